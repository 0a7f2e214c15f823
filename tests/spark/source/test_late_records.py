"""Records that are late: an ending time passes over them, and a batch warns of it."""

import logging

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.options import SourceOptions
from tests.spark.settings import parsed
from tools.traffic import Events, batch, values

pytestmark = pytest.mark.kafka

DAY_MS = 1_760_000_000_000
LOGGER = "spark_kafka_source.spark.source.batch"


@pytest.fixture
def late(events: Events) -> Events:
    """Topic with a record of the day behind one of the next day."""
    events.create()
    for value, hours in (("early", 1), ("next day", 25), ("late", 2)):
        events.write([value], timestamp_ms=DAY_MS + hours * 3_600_000)
    return events


def options(events: Events, **more: str) -> SourceOptions:
    address = {"kafka.bootstrap.servers": events.kafka.bootstrap_servers, "subscribe": events.name}
    return parsed(**address | more)


@pytest.mark.spark
def test_the_recipe_reads_the_late_record_of_the_day(spark: SparkSession, late: Events) -> None:
    next_day_ms = DAY_MS + 24 * 3_600_000
    found = late.options(startingOffsets=None, startingTimestamp=str(DAY_MS))
    narrow = batch(spark, found | {"endingTimestamp": str(next_day_ms)})
    assert values(narrow) == ["early"]
    wide = batch(spark, found | {"endingTimestamp": str(next_day_ms + 6 * 3_600_000)})
    day = f"timestamp >= timestamp_millis({DAY_MS}) AND timestamp < timestamp_millis({next_day_ms})"
    assert values(wide.where(day)) == ["early", "late"]


@pytest.mark.parametrize("given", ["endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_batch_warns_of_times_that_producers_set(
    late: Events, given: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = str(DAY_MS) if given == "endingTimestamp" else late.offsets(DAY_MS)
    with caplog.at_level(logging.WARNING, LOGGER):
        KafkaBatchReader(options(late, **{given: text})).partitions()
    assert f"Option '{given}' ends each partition" in caplog.text
    assert f"In {late.name} the producers give the times" in caplog.text


def test_no_warning_where_brokers_set_the_times_or_no_time_ends_the_batch(
    late: Events, caplog: pytest.LogCaptureFixture
) -> None:
    ordered = late.another("ordered")
    ordered.create(message_timestamp_type="LogAppendTime")
    with caplog.at_level(logging.WARNING, LOGGER):
        KafkaBatchReader(options(ordered, endingTimestamp=str(DAY_MS))).partitions()
        KafkaBatchReader(options(late, startingTimestamp=str(DAY_MS))).partitions()
    assert caplog.text == ""
