"""Lag of a query's group in Kafka's own tool, with the last micro-batch included."""

import threading

import pytest
from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession

from tests.spark_session import Run, Start
from tools.traffic import TIMEOUT_SECONDS, Batches, Events, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def tool(events: Events, *arguments: str) -> str:
    """Return what `kafka-consumer-groups` says. On a busy machine a JVM starts slowly."""
    return events.kafka.tool("consumer-groups", *arguments, timeout_ms=TIMEOUT_SECONDS * 1000)


def described(events: Events) -> dict[int, tuple[str, str]]:
    """Return committed offset and lag of each partition, as `kafka-consumer-groups` shows them."""
    group = events.name
    lines = tool(events, "--describe", "--group", group).splitlines()
    rows = [line.split() for line in lines if line.startswith(f"{group} ")]
    return {int(row[2]): (row[3], row[5]) for row in rows}


def test_no_lag_after_available_now(spark: SparkSession, events: Events, run: Run) -> None:
    events.create(3)
    events.write(range(7))
    events.write(range(4), 1)
    found = events.options(maxOffsetsPerTrigger=4) | {"kafka.group.id": events.name}
    run(stream(spark, found), Batches())
    assert described(events) == {0: ("7", "0"), 1: ("4", "0"), 2: ("0", "0")}


def test_the_lag_of_a_query_that_is_behind_and_then_is_not(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.create()
    events.write(range(10))
    found = events.options(maxOffsetsPerTrigger=4) | {"kafka.group.id": events.name}
    in_second, go_on = threading.Event(), threading.Event()

    def sink(_: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            in_second.set()
            assert go_on.wait(TIMEOUT_SECONDS)

    query = start(stream(spark, found).writeStream.foreachBatch(sink))
    wait_until(in_second.is_set, query)
    assert described(events) == {0: ("4", "6")}
    go_on.set()
    # The idle query commits its last batch, too.
    wait_until(lambda: described(events) == {0: ("10", "0")}, query)


def test_a_group_with_members_does_not_end_the_query(
    spark: SparkSession, events: Events, run: Run
) -> None:
    events.create()
    events.write(range(9))
    servers = events.kafka.bootstrap_servers
    member = Consumer({"bootstrap.servers": servers, "group.id": events.name, "log_level": 0})
    member.subscribe([events.name])

    def is_assigned() -> bool:
        member.poll(0.1)  # It may also return an error, as of a topic that was created just now.
        return bool(member.assignment())

    try:
        wait_until(is_assigned)
        found = events.options(maxOffsetsPerTrigger=3) | {"kafka.group.id": events.name}
        sink = Batches()
        run(stream(spark, found), sink)
        assert len(sink.values) == 9
        assert described(events) == {0: ("-", "-")}
    finally:
        member.close()


def test_without_a_group_nothing_is_committed(
    spark: SparkSession, events: Events, run: Run
) -> None:
    events.create()
    events.write(range(3))
    before = set(tool(events, "--list").split())
    run(stream(spark, events.options()), Batches())
    # An empty group of another test may be gone meanwhile.
    assert set(tool(events, "--list").split()) <= before
