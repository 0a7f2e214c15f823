"""A stream continues after its broker stops and starts again."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.spark_session import Start
from tools.traffic import Batches, Events, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[LocalKafka]:
    """A broker that these tests may stop."""
    with LocalKafka() as kafka:
        yield kafka


@pytest.mark.parametrize("end", [LocalKafka.stop, LocalKafka.kill], ids=["stop", "kill"])
def test_a_stream_goes_on_when_its_broker_is_back(
    spark: SparkSession,
    own_kafka: LocalKafka,
    topic: str,
    start: Start,
    end: Callable[[LocalKafka], None],
) -> None:
    events = Events(own_kafka, topic)
    events.create(2)
    # A busy machine may take longer for the start of a broker than a query waits by default.
    patient = {"kafka.group.id": topic, "kafka.default.api.timeout.ms": 600_000}
    found = events.options() | patient
    sink = Batches()
    query = start(stream(spark, found).writeStream.foreachBatch(sink))
    events.write(["a", "b"])
    wait_until(lambda: len(sink.values) >= 2, query)
    for partition, value in enumerate("cd"):
        end(own_kafka)
        own_kafka.start()
        events.write([value], partition)
        wait_until(lambda: sink.values[-1:] == [value], query)  # noqa: B023 - called in this turn
    assert sink.values == ["a", "b", "c", "d"]
