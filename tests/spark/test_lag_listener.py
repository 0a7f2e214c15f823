"""Lag and group commits of a `LagListener` from Spark's progress, without Spark."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from spark_kafka_source.errors import ConfigurationError, error_named
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.spark.lag_listener import Lag, LagListener
from spark_kafka_source.spark.source.source_offset import INITIAL, SourceOffset
from spark_kafka_source.testing.memory import MemoryBroker
from tests.spark.settings import A0, A1, B0, BOOTSTRAP_SERVERS

pytestmark = pytest.mark.memory(topics={"a": 2, "b": 1})

# Not all loggers: those of Spark's threads in this process say much at this level.
LOGGER = "spark_kafka_source.spark.lag_listener"
QUERY_ID = "c0ffee00-0000-4000-8000-000000000001"
FORMAT_1 = {"version": 1, "offsets": {"a": {"0": 3, "1": 5}}}
FORMAT_2 = SourceOffset({A0: 3, A1: 5}, leader_epochs={A0: 7}).to_json()
LATEST = SourceOffset({A0: 10, A1: 5}).to_json()
NOT_OURS = [
    {"a": {"0": 3}},  # of Spark's own Kafka connector
    {"version": {"0": 3}},  # the same, with a topic named `version`
    {"version": True, "offsets": {}},
    {"version": 3, "offsets": {"a": {"0": 3}}},  # of a newer release
    {"version": 2},
    INITIAL.to_json(),
    {"seconds": 5, "version": None},
    17,
    "17",
    "not JSON",
    '{"version":' + "[" * 100_000,
    None,
    [2, 3],
]


class Told:
    """A callback that keeps its arguments, and raises `error` if that is set."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.lags: list[Lag] = []
        self.batches: list[int] = []

    def __call__(self, progress: StreamingQueryProgress, lag: Lag) -> None:
        self.lags.append(lag)
        self.batches.append(progress.batchId)
        if self.error:
            raise self.error


def source(end: Any, latest: Any = None) -> dict[str, Any]:
    return {
        "description": "source",
        "startOffset": None,
        "endOffset": end,
        "latestOffset": latest,
        "numInputRows": 1,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
    }


def progressed(
    *sources: dict[str, Any], batch_id: int = 4, query_id: str = QUERY_ID, name: str | None = None
) -> QueryProgressEvent:
    progress = {
        "id": query_id,
        "runId": QUERY_ID,
        "name": name,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": batch_id,
        "batchDuration": 1,
        "stateOperators": [],
        "sources": list(sources),
        "sink": {"description": "sink", "numOutputRows": 1},
    }
    # Spark Connect sends this form. Objects of the JVM give the offsets as text.
    return QueryProgressEvent.fromJson({"progress": json.loads(json.dumps(progress))})


def lags(*sources: dict[str, Any]) -> list[Lag]:
    told = Told()
    LagListener(told).onQueryProgress(progressed(*sources))
    return told.lags


Committing = Callable[..., LagListener]


@pytest.fixture
def committing(broker: MemoryBroker) -> Iterator[Committing]:
    """Function that makes a listener. The listener commits to the group `g`."""
    options = {"kafka.bootstrap.servers": str(broker.address()), "kafka.group.id": "g"}
    with ExitStack() as opened:

        def listener(callback: Told | None = None) -> LagListener:
            made = LagListener(callback, options=options | {"subscribe": "a"})
            return opened.enter_context(closing(made))

        yield listener


@pytest.mark.parametrize("end", [FORMAT_1, FORMAT_2], ids=["format 1", "format 2"])
@pytest.mark.parametrize("as_sent", [json.dumps, lambda offset: offset], ids=["text", "object"])
def test_lag_is_what_is_left_of_each_partition(end: Any, as_sent: Any) -> None:
    assert lags(source(as_sent(end), as_sent(LATEST))) == [{A0: 7, A1: 0}]


def test_lag_is_never_negative() -> None:
    """The latest offset and the end come from different moments. The latest may fall back."""
    assert lags(source(SourceOffset({A0: 11}).to_json(), LATEST)) == [{A0: 0}]


@given(st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 2**62), st.integers(0, 2**62))))
def test_reading_the_lag_leads_to_the_latest(partitions: dict[int, tuple[int, int]]) -> None:
    ends = {A0._replace(partition=number): end for number, (end, _) in partitions.items()}
    latest = {A0._replace(partition=number): last for number, (_, last) in partitions.items()}
    (lag,) = lags(source(SourceOffset(ends).to_json(), SourceOffset(latest).to_json()))
    assert list(lag) == sorted(ends)
    assert all(ends[each] + lag[each] == max(latest[each], ends[each]) for each in ends)


def test_before_spark_4_2_the_end_of_a_micro_batch_carries_what_is_left() -> None:
    """Spark 4.0 and 4.1 report the end of a micro-batch as the latest offset, too."""
    end = SourceOffset({A0: 3, A1: 5}, log_ends={A0: 10}).to_json()
    assert lags(source(end, end)) == [{A0: 7, A1: 0}]
    # With Trigger.AvailableNow they report the end that the next micro-batch would have.
    assert lags(source(end, SourceOffset({A0: 6, A1: 5}, log_ends={A0: 11}).to_json())) == [
        {A0: 8, A1: 0}
    ]


@pytest.mark.parametrize("latest", [None, "None", "null", {"a": {"0": 9}}])
def test_where_the_latest_is_missing_the_lag_is_not_said_to_be_zero(
    latest: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A null of the JVM comes as the text 'None'. Another format of the latest gives no lag."""
    with caplog.at_level(logging.INFO, LOGGER):
        assert lags(source(FORMAT_2, latest)) == [{}]
    assert caplog.messages == [f"query {QUERY_ID} batch 4: lag unknown"]


def test_a_partition_that_the_latest_does_not_have_is_left_out() -> None:
    assert lags(source(SourceOffset({A0: 3, B0: 3}).to_json(), LATEST)) == [{A0: 7}]


@pytest.mark.parametrize("end", NOT_OURS, ids=str)
def test_other_sources_are_passed_over(
    end: Any, broker: MemoryBroker, committing: Committing
) -> None:
    assert lags(source(end, LATEST)) == []
    assert lags(source(end, end), source(FORMAT_2, LATEST), source(end, LATEST)) == [{A0: 7, A1: 0}]
    committing().onQueryProgress(progressed(source(end, LATEST)))
    assert not broker.seen


def test_the_sum_is_logged_with_query_and_batch(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        LagListener().onQueryProgress(progressed(source(FORMAT_2, LATEST), batch_id=9))
    assert caplog.messages == [f"query {QUERY_ID} batch 9: lag 7"]


def test_each_micro_batch_is_committed_with_who_did_it(
    broker: MemoryBroker, committing: Committing
) -> None:
    listener = committing()
    listener.onQueryProgress(progressed(source(FORMAT_2, LATEST), batch_id=4))
    listener.onQueryProgress(progressed(source(LATEST), batch_id=5))
    assert broker.cluster.committed["g"] == {A0: 10, A1: 5}
    first, second = broker.requests(OffsetCommitRequest)
    assert [
        (each.partition_index, each.committed_offset, each.committed_leader_epoch)
        for each in first.topics[0].partitions
    ] == [(0, 3, 7), (1, 5, -1)]
    said = {each.committed_metadata for each in first.topics[0].partitions}
    assert said == {f"query {QUERY_ID} batch 4"}
    (moved,) = second.topics[0].partitions
    assert moved.committed_metadata == f"query {QUERY_ID} batch 5"


def test_without_options_nothing_is_committed_and_with_them_a_group_is_needed() -> None:
    LagListener().onQueryProgress(progressed(source(FORMAT_2, LATEST)))
    with pytest.raises(ConfigurationError, match=r"'kafka\.group\.id': is missing"):
        LagListener(options=BOOTSTRAP_SERVERS | {"subscribe": "a"})


def test_a_callback_that_raises_costs_no_other_source_anything(
    broker: MemoryBroker, committing: Committing, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told(ZeroDivisionError("mine"))
    other = source(SourceOffset({B0: 1}).to_json(), SourceOffset({B0: 2}).to_json())
    committing(told).onQueryProgress(progressed(source(FORMAT_2, LATEST), other))
    assert told.lags == [{A0: 7, A1: 0}, {B0: 1}]
    assert broker.cluster.committed["g"] == {A0: 3, A1: 5, B0: 1}
    assert caplog.text.count("ZeroDivisionError: mine") == 2


def test_a_commit_that_fails_keeps_the_lag_from_nobody(
    broker: MemoryBroker, committing: Committing
) -> None:
    broker.control(OffsetCommitRequest, error_named("GROUP_AUTHORIZATION_FAILED"))
    told = Told()
    listener = committing(told)
    for batch_id in (4, 5):
        listener.onQueryProgress(progressed(source(FORMAT_2, LATEST), batch_id=batch_id))
    assert told.batches == [4, 5]
    assert told.lags == [{A0: 7, A1: 0}] * 2


def test_what_else_happens_to_a_query_is_none_of_its_business() -> None:
    told = Told()
    listener = LagListener(told)
    listener.onQueryIdle(QueryIdleEvent(UUID(QUERY_ID), UUID(QUERY_ID), "now"))
    listener.onQueryTerminated(QueryTerminatedEvent(UUID(QUERY_ID), UUID(QUERY_ID), None, None))
    assert not told.lags


def test_once_closed_it_tells_of_the_lag_and_commits_no_more(
    broker: MemoryBroker, committing: Committing
) -> None:
    told = Told()
    listener = committing(told)
    listener.onQueryProgress(progressed(source(FORMAT_2, LATEST)))
    listener.close()
    listener.onQueryProgress(progressed(source(LATEST, LATEST), batch_id=5))
    assert told.batches == [4, 5]
    assert broker.cluster.committed["g"] == {A0: 3, A1: 5}
