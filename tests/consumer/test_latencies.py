"""Latencies of commits and fetches in `metrics()`, and commits with little time."""

import contextlib
import time
from typing import Any

import pytest

from spark_kafka_source.errors import KafkaTimeoutError
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.testing.memory import Hold, MemoryBroker
from tests.consumer.consumers import IN_GROUP, T0, consuming, fill, poll_until, polled

pytestmark = pytest.mark.memory(topics={"t": 1})

HELD_SECONDS = 0.05
SHORT_MS = 450
TRIES = 20


def release_in_a_while(
    broker: MemoryBroker, request_type: type[Request[Any]], held: Hold, count: int
) -> None:
    """Release the answer some time after the request has come in."""
    broker.wait_for(request_type, count)
    time.sleep(HELD_SECONDS)
    held.release()


def test_the_time_of_a_commit_is_that_of_its_request_in_milliseconds(broker: MemoryBroker) -> None:
    with consuming(broker, T0, **IN_GROUP) as consumer:
        told: list[Exception | None] = []
        held = broker.hold(OffsetCommitRequest)
        began_seconds = time.monotonic()
        consumer.commit_async({T0: 1}, lambda _, error: told.append(error))
        poll_until(consumer, lambda: bool(broker.requests(OffsetCommitRequest)))
        release_in_a_while(broker, OffsetCommitRequest, held, 1)
        poll_until(consumer, lambda: bool(told))
        took_ms = (time.monotonic() - began_seconds) * 1000
        found = consumer.metrics()
        assert told == [None]
        assert HELD_SECONDS * 1000 <= found["commit-latency-max"] <= took_ms
        assert found["commit-latency-avg"] == found["commit-latency-max"]
        assert found["commit-total"] == 1


def test_the_time_of_a_fetch_is_that_of_its_request_in_milliseconds(broker: MemoryBroker) -> None:
    fill(broker, T0, 1)
    with consuming(broker, T0) as consumer:
        held = broker.hold(FetchRequest)
        began_seconds = time.monotonic()
        poll_until(consumer, lambda: bool(broker.requests(FetchRequest)))
        release_in_a_while(broker, FetchRequest, held, 1)
        polled(consumer, 10)
        took_ms = (time.monotonic() - began_seconds) * 1000
        found = consumer.metrics()
        assert HELD_SECONDS * 1000 <= found["fetch-latency-max"] <= took_ms
        assert 0 < found["fetch-latency-avg"] <= found["fetch-latency-max"]


def test_a_commit_with_little_time_is_made_where_there_is_enough(broker: MemoryBroker) -> None:
    """At least one of several tries succeeds, even on a loaded machine."""
    with consuming(broker, T0, **IN_GROUP) as consumer:
        consumer.commit({T0: 1})
        for offset in range(2, TRIES):
            with contextlib.suppress(KafkaTimeoutError):
                consumer.commit({T0: offset}, timeout_ms=SHORT_MS)
                assert broker.cluster.committed["g"] == {T0: offset}
                return
        pytest.fail(f"no commit within {SHORT_MS} ms in {TRIES} tries")
