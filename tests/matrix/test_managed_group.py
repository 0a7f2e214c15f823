"""Queries that share a group, with each Spark."""

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.spark_session import Start
from tools.traffic import Batches, Events, stream, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    # Spark 4.0 leaves the sockets of rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed .socket:ResourceWarning"),
]

PARTITIONS = 4


def test_queries_share_a_group_and_take_over(
    session: SparkSession, kafka: LocalKafka, topic: str, start: Start
) -> None:
    """A query that stops leaves the group at once: its session would outlast the test."""
    events = Events(kafka, topic)
    events.create(PARTITIONS)
    found = events.options(managedGroup="true", limitsWithAvailableNow="accept") | {
        "kafka.group.id": events.name,
        "kafka.session.timeout.ms": "1000000",
        "kafka.heartbeat.interval.ms": "500",
    }
    first, second, again = Batches(), Batches(), Batches()
    writer = stream(session, found).writeStream
    of_first = start(writer.foreachBatch(first), "first")
    of_second = start(writer.foreachBatch(second), "second")
    written: list[str] = []

    def write() -> set[str]:
        """Write a row to each partition, and return the rows."""
        rows = [f"{len(written) + partition}" for partition in range(PARTITIONS)]
        for partition, row in enumerate(rows):
            events.write([row], partition)
        written.extend(rows)
        return set(rows)

    rows = write()
    while rows.isdisjoint(first.values) or rows.isdisjoint(second.values):
        rows = write()
        wait_until(lambda: rows <= {*first.values, *second.values}, of_first)  # noqa: B023
    assert sorted(first.values + second.values) == sorted(written)

    of_first.processAllAvailable()
    of_first.stop()
    rows = write()
    wait_until(lambda: rows <= set(second.values), of_second)
    of_second.processAllAvailable()
    of_second.stop()
    # The checkpoint of the first query is behind the group.
    rows = write()
    of_first = start(writer.foreachBatch(again), "first")
    wait_until(lambda: rows <= set(again.values), of_first)
    assert sorted(again.values) == sorted(rows)
