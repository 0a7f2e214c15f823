"""Sources with names, which Spark 4.2 and newer find again in another order."""

from collections.abc import Iterator, Mapping
from functools import reduce

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.matrix.test_smoke import FROM_SPARK_4_2
from tests.spark_session import Run, Start
from tools.traffic import Batches, Events, failure

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.skipif(not FROM_SPARK_4_2, reason="sources have names since Spark 4.2"),
]

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
LOG_VERSION = "spark.sql.streaming.offsetLog.formatVersion"


@pytest.fixture
def naming(session: SparkSession) -> Iterator[SparkSession]:
    """Return the session, with the setting without which Spark takes no names."""
    session.conf.set(EVOLUTION, "true")
    yield session
    session.conf.unset(EVOLUTION)
    session.conf.unset(LOG_VERSION)


@pytest.fixture
def topics(kafka: LocalKafka, topic: str) -> dict[str, Events]:
    """Make three topics, each with one row. Their names begin with those of the sources."""
    made = {name: Events(kafka, f"{name}-{topic}") for name in ("one", "two", "three")}
    for name, each in made.items():
        each.create()
        each.write([f"{name} 0"])
    return made


def union(session: SparkSession, topics: Mapping[str, Events], *names: str) -> DataFrame:
    """Return the rows of these topics, each from a source with its name, in this order."""
    frames = [
        session.readStream.format("pykafka").name(name).options(**topics[name].options()).load()
        for name in names
    ]
    return reduce(DataFrame.union, frames)


def test_a_restart_finds_each_source_by_its_name(
    naming: SparkSession, topics: dict[str, Events], run: Run
) -> None:
    """Also with one source more, and later with one less."""
    naming.conf.set(LOG_VERSION, "2")
    sink = Batches()
    run(union(naming, topics, "one", "two"), sink)
    assert sink.values == ["one 0", "two 0"]
    topics["one"].write(["one 1"])
    topics["two"].write(["two 1"])
    run(union(naming, topics, "three", "two", "one"), sink)
    assert sink.values == ["one 0", "one 1", "three 0", "two 0", "two 1"]
    topics["three"].write(["three 1"])
    run(union(naming, topics, "three", "one"), sink)
    assert sink.values == ["one 0", "one 1", "three 0", "three 1", "two 0", "two 1"]


def test_spark_4_2_alone_needs_the_setting_of_the_log(
    naming: SparkSession, topics: dict[str, Events], run: Run, start: Start
) -> None:
    """Without it Spark 4.2 hands a source the offsets of another one, whatever their names are."""
    sink = Batches()
    run(union(naming, topics, "one", "two"), sink)
    topics["one"].write(["one 1"])
    swapped = union(naming, topics, "two", "one")
    if pyspark.__version__.startswith("4.2."):
        found = failure(start(swapped.writeStream.foreachBatch(sink).trigger(availableNow=True)))
        assert "[KAFKA_DATA_LOSS.PARTITIONS_DELETED]" in found
        assert sink.values == ["one 0", "two 0"]
    else:
        run(swapped, sink)
        assert sink.values == ["one 0", "one 1", "two 0"]
