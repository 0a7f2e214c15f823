"""Queries that share a group, called as Spark calls them, with an in-memory group coordinator."""

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.errors import ConfigurationError, KafkaTimeoutError, error_named
from spark_kafka_source.groups import CommitFailedError, commit_offsets, committed_offsets
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.spark.conditions import DataLossError
from spark_kafka_source.spark.source import idle_pace, stream
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.managed_group import ManagedGroup
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from spark_kafka_source.testing.memory.consumer_coordinator import ConsumerGroup
from spark_kafka_source.testing.memory.handlers import metadata
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1, parsed
from tests.spark.source.engine import Json, ranges, tell

pytestmark = pytest.mark.memory(nodes=2)

PATIENCE_SECONDS = 120.0
PARTITIONS = 4
EACH_SPARK = pytest.mark.parametrize("earlier", [False, True], ids=["4.2", "4.0"])
QUICK = {
    "managedGroup": "true",
    "kafka.group.id": "g",
    "kafka.heartbeat.interval.ms": "10",
    "kafka.session.timeout.ms": "60000",
    "kafka.retry.backoff.ms": "1",
    "fetchOffset.numRetries": "0",
    "startingOffsets": "earliest",
}


class Query:
    """A query as Spark runs it, and the records it read, by partition and offset.

    Spark 4.0 and 4.1, `earlier`, tell only a restarted reader where the query is.
    """

    def __init__(
        self,
        broker: MemoryBroker,
        start: Json | None = None,
        *,
        earlier: bool = False,
        **options: str,
    ) -> None:
        servers = {"kafka.bootstrap.servers": str(broker.address())}
        self.reader = KafkaStreamReader(parsed(**servers | QUICK | options))
        self.offset: Json = self.reader.initialOffset() if start is None else start
        self._earlier = earlier
        if earlier and start is not None:
            tell(self.reader, start)
        self.finished = False
        self.read: Counter[tuple[TopicPartition, int]] = Counter()

    def batch(self, *, finished: bool = True) -> bool:
        """Run one micro-batch. If it is not `finished`, read it and forget its end."""
        end = (
            self.reader.latestOffset()
            if self._earlier
            else self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())
        )
        if end == self.offset:
            return False
        if self.finished:
            self.reader.commit(self.offset)  # Spark commits at this moment.
        for wanted in ranges(self.reader, self.offset, end):
            self.read.update(
                (wanted.topic_partition, offset) for offset in range(wanted.start, wanted.end)
            )
        if finished:
            self.offset, self.finished = end, True
        return True

    @property
    def assigned(self) -> set[TopicPartition]:
        group = self.reader._group
        return set(group._membership.assignment) if group is not None else set()

    def stop(self) -> None:
        self.reader.stop()

    def vanish(self, broker: MemoryBroker) -> None:
        """Die like a killed query: send no request, and let the session end."""
        group = self.reader._group
        assert group is not None
        member = group.member()
        group._membership._is_ending = True  # A dead process has no thread left that asks.
        group._membership._coordinator.close()
        group._planner.close()
        for member_id in list(broker.group("g").members) if member is None else [member.member_id]:
            broker.drop_member("g", member_id)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only a short time. One thread runs all queries, so a waiting query blocks the others."""
    monkeypatch.setattr(stream, "_JOIN_MS", 20)
    monkeypatch.setattr(idle_pace, "LEAST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(idle_pace, "_MOST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    """Logs of topic `a` with ten records in each partition."""
    logs = broker.create_topic("a", PARTITIONS)
    for log in logs:
        log.append(*[b"x"] * 10)
    return logs


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(stack: ExitStack, broker: MemoryBroker, **how: Any) -> Query:
    query = Query(broker, **how)
    stack.callback(query.stop)
    return query


def settle(*queries: Query) -> None:
    """Run the queries until they own all partitions, and each partition has one owner."""
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until_seconds:
        for query in queries:
            query.batch()
        held = [query.assigned for query in queries]
        if sum(map(len, held)) == len(set().union(*held)) == PARTITIONS and all(held):
            return
    raise AssertionError(f"not settled: {[query.assigned for query in queries]}")


def committed(broker: MemoryBroker, query: Query) -> dict[TopicPartition, int]:
    where = [TopicPartition("a", partition) for partition in range(PARTITIONS)]
    return query.reader._planner.client.run(
        committed_offsets(query.reader._planner.client, "g", where)
    )


def everything(logs: list[PartitionLog]) -> set[tuple[TopicPartition, int]]:
    return {
        (TopicPartition("a", number), offset)
        for number, log in enumerate(logs)
        for offset in range(log.end_offset)
    }


def test_one_query_is_assigned_everything(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    query = started(stack, broker)
    settle(query)
    assert query.read == Counter(everything(logs))


@EACH_SPARK
def test_two_queries_share_the_partitions(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack, earlier: bool
) -> None:
    first = started(stack, broker, earlier=earlier)
    settle(first)
    second = started(stack, broker, earlier=earlier)
    settle(first, second)
    assert len(first.assigned) == len(second.assigned) == 2
    for log in logs:
        log.append(b"more")
    first.batch()
    second.batch()
    assert first.read + second.read == Counter(everything(logs))
    assert {where for where, _ in second.read} == second.assigned


@EACH_SPARK
def test_who_stops_is_followed_at_once_where_it_stopped(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack, earlier: bool
) -> None:
    first, second = (started(stack, broker, earlier=earlier) for _ in range(2))
    settle(first, second)
    for log in logs:
        log.append(b"more")
    for query in (first, second):
        query.batch()
        query.batch()  # The next trigger commits the end of the last micro-batch.
    first.stop()
    settle(second)
    assert first.read + second.read == Counter(everything(logs))


def test_who_is_stopped_by_a_signal_leaves_first(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark stops a query's process by SIGTERM. A second SIGTERM comes while the query leaves."""
    before = signal.getsignal(signal.SIGTERM)
    stack.callback(signal.signal, signal.SIGTERM, before)
    program = SimpleNamespace(name="pyspark.sql.streaming.python_streaming_source_runner")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", program)
    query = started(stack, broker)
    settle(query)
    with pytest.raises(SystemExit):
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    query.stop()
    assert not broker.group("g").members


@EACH_SPARK
def test_a_restart_goes_on_where_its_checkpoint_is_or_another_query_has_read_to(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack, earlier: bool
) -> None:
    first = Query(broker)
    settle(first)
    first.stop()  # The query has not committed its last position yet.
    again = Query(broker, start=first.offset, earlier=earlier)
    settle(again)
    assert not again.read
    assert committed(broker, again) == {TopicPartition("a", each): 10 for each in range(PARTITIONS)}
    again.stop()
    for log in logs:
        log.append(b"more")
    other = Query(broker)
    settle(other)
    other.batch()
    other.stop()
    once_more = started(stack, broker, start=first.offset, earlier=earlier)
    settle(once_more)
    assert not once_more.read


def _begin_an_epoch(broker: MemoryBroker, logs: list[PartitionLog], *values: bytes) -> None:
    for partition, log in enumerate(logs):
        broker.move_leader(TopicPartition("a", partition), log.leader_id)
        log.append(*values)


@pytest.mark.parametrize("fails", ["true", "false"])
def test_what_others_read_from_a_later_leader_is_no_truncated_log(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack, fails: str
) -> None:
    """The checkpoint's leader epochs belong to its own offsets, not to the group's offsets."""
    first = Query(broker)
    settle(first)
    first.stop()
    _begin_an_epoch(broker, logs, b"in a later epoch")
    other = Query(broker)
    settle(other)
    other.batch()
    other.stop()
    again = started(stack, broker, start=first.offset, failOnDataLoss=fails)
    settle(again)
    assert not again.read
    for log in logs:
        log.append(b"more")
    again.batch()
    assert again.read == Counter((TopicPartition("a", each), 11) for each in range(PARTITIONS))


def test_a_log_truncated_below_what_others_read_is_a_loss(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    """The group's committed offsets have their own leader epochs."""
    first = Query(broker)
    settle(first)
    first.stop()
    _begin_an_epoch(broker, logs, b"lost")
    other = Query(broker)
    settle(other)
    other.batch()
    other.stop()
    for log in logs:
        log.truncate(10)
    _begin_an_epoch(broker, logs, b"another", b"and more")
    again = started(stack, broker, start=first.offset)
    with pytest.raises(DataLossError, match="its log was truncated at offset 10"):
        settle(again)


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize("available_now", [False, True], ids=["stream", "available now"])
def test_what_others_read_since_the_ends_were_looked_up_is_no_truncated_log(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    *,
    fails: str,
    available_now: bool,
) -> None:
    query = started(stack, broker, failOnDataLoss=fails)
    reader, look_up = query.reader, query.reader._look_up_ends
    others = iter([{TopicPartition("a", each): 11 for each in range(PARTITIONS)}])

    def looked_up(position: Any) -> Any:
        ends = look_up(position)
        for read in others:
            for log in logs:
                log.append(b"more")
            reader._planner.client.run(commit_offsets(reader._planner.client, "g", read))
        return ends

    monkeypatch.setattr(reader, "_look_up_ends", looked_up)
    if available_now:
        reader.prepareForTriggerAvailableNow()
    settle(query)
    query.batch()
    assert not query.read
    if not available_now:
        for log in logs:
            log.append(b"and more")
        query.batch()
        assert query.read == Counter((TopicPartition("a", each), 11) for each in range(PARTITIONS))


def test_a_member_that_was_away_does_not_overwrite_newer_commits(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    """A micro-batch outlasts `max.poll.interval.ms`. Another query takes over meanwhile."""
    slow, other = started(stack, broker, **{"kafka.max.poll.interval.ms": "600"}), Query(broker)
    settle(slow, other)
    for log in logs:
        log.append(b"more")
    slow.batch()
    settle(other)
    for log in logs:
        log.append(b"and more")
    other.batch()
    other.batch()
    before = committed(broker, other)
    other.stop()
    for log in logs:
        log.append(b"still more")
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while not slow.batch() and time.monotonic() < until_seconds:
        pass
    assert committed(broker, slow) == before == dict.fromkeys(before, 12)


def test_a_rebalance_upon_the_other_is_waited_for(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The query cannot commit for new partitions until all members have joined again."""
    holder = started(stack, broker)
    settle(holder)
    for log in logs:
        log.append(b"more")
    ahead: Json = {"version": 2, "offsets": {"a": {str(each): 11 for each in range(PARTITIONS)}}}
    query = started(stack, broker, start=ahead)
    query.batch()
    assert query.reader._group is not None and holder.reader._group is not None
    group = query.reader._group
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while not group._taken_over and time.monotonic() < until_seconds:
        holder.reader._group.changed()  # The holder rebalances, but finishes no micro-batch.
        group.changed()
    with monkeypatch.context() as patch:
        patch.setattr(type(group._membership), "member", None)
        assert not query.batch()
    settle(holder, query)
    assert not {(where, 10) for where in query.assigned} & query.read.keys()


def test_where_the_group_knows_nothing_the_option_says_where_to_begin(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    query = started(stack, broker, startingOffsets="latest")
    settle(query)
    assert not query.read
    # A query that takes over now must not begin at a later end.
    assert committed(broker, query) == {TopicPartition("a", each): 10 for each in range(PARTITIONS)}


def test_a_partition_that_was_added_begins_at_its_start(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    logs[2:] = []
    broker.cluster.topics["a"].logs[2:] = []
    # The group's leader looks at topics every five minutes, but the query sees partitions sooner.
    query = started(stack, broker, startingOffsets="latest")
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while query.assigned != {A0, A1} and time.monotonic() < until_seconds:
        query.batch()
    added = [PartitionLog(leader_id=0), PartitionLog(leader_id=1)]
    for log in added:
        log.append(b"early")
    broker.cluster.topics["a"].logs += added
    settle(query)
    assert query.read == Counter({(TopicPartition("a", 2), 0): 1, (TopicPartition("a", 3), 0): 1})


def test_a_topic_that_comes_is_read_though_the_leader_hears_of_it_late(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    """The query finds it by its pattern. The broker that the leader asks by name lags behind."""
    query = started(stack, broker, subscribePattern="[ab]")
    settle(query)
    broker.create_topic("b")[0].append(b"late")
    lagging = replace(broker.cluster, topics={"a": broker.cluster.topics["a"]})
    asked = []

    def answer(request: Any) -> Any:
        if request.topics is None or "b" not in {each.name for each in request.topics}:
            return Action.HANDLE
        asked.append(request)
        return metadata(lagging, 0, request, 12) if len(asked) <= 2 else Action.HANDLE

    broker.control(MetadataRequest, answer, times=None)
    late = TopicPartition("b", 0)
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while (late, 0) not in query.read:
        assert time.monotonic() < until_seconds, len(asked)
        query.batch()
    assert len(asked) > 2
    assert query.read == Counter([*everything(logs), (late, 0)])


def test_a_run_over_what_is_available_waits_for_its_assignment(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    query = started(stack, broker)
    query.reader.prepareForTriggerAvailableNow()
    while query.batch():
        pass
    assert query.read == Counter(everything(logs))


def over_after(monkeypatch: pytest.MonkeyPatch, wait: str, timeout_ms: int) -> None:
    """Make one wait of the members of groups short. All else has its usual time."""
    waited = getattr(ManagedGroup, wait)
    monkeypatch.setattr(
        ManagedGroup, wait, lambda group, partitions, _: waited(group, partitions, timeout_ms)
    )


def test_a_run_that_is_assigned_nothing_in_time_fails(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holder = started(stack, broker)
    settle(holder)  # The holder then does not poll, so the group waits for it.
    query = started(stack, broker)
    query.reader.prepareForTriggerAvailableNow()
    over_after(monkeypatch, "join", 500)
    with pytest.raises(KafkaTimeoutError, match=r"'g' has assigned nothing to this query within"):
        query.batch()


def run_to_the_end(query: Query) -> None:
    """Run with Trigger.AvailableNow, as Spark does, and stop the reader at the end."""
    query.reader.prepareForTriggerAvailableNow()
    while query.batch():
        pass
    time.sleep(0.3)  # Spark ends other things first. The query stays a member meanwhile.
    query.stop()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("runs", [2, 3, 6])
def test_runs_at_once_read_all_that_is_available_between_them(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack, protocol: str, runs: int
) -> None:
    """This holds also for more runs than partitions."""
    # A partition that moves has no owner for some heartbeats.
    if protocol == "consumer":
        broker.cluster.consumer_groups["g"] = ConsumerGroup(heartbeat_interval_ms=200)
    options = {"kafka.group.protocol": protocol, "maxOffsetsPerTrigger": "7"}
    queries = [started(stack, broker, **options) for _ in range(runs)]
    with ThreadPoolExecutor(runs) as pool:
        list(pool.map(run_to_the_end, queries))
    assert sum((each.read for each in queries), Counter()) == Counter(everything(logs))


def test_a_run_whose_commits_are_refused_fails_in_time(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time of an API call is over with the third refusal here, so no join can be too late."""
    times_ms: list[int] = []

    class Patience:
        @property
        def expired(self) -> bool:
            return len(broker.requests(OffsetCommitRequest)) >= 3

    def after_ms(timeout_ms: int) -> Patience:
        times_ms.append(timeout_ms)
        return Patience()

    monkeypatch.setattr(stream, "Deadline", SimpleNamespace(after_ms=after_ms))
    broker.control(OffsetCommitRequest, error_named("UNKNOWN_MEMBER_ID"), times=None)
    query = started(stack, broker, **{"kafka.default.api.timeout.ms": "61000"})
    query.reader.prepareForTriggerAvailableNow()
    with pytest.raises(CommitFailedError):
        query.batch()
    assert times_ms == [61_000]


def test_a_run_takes_over_what_a_lost_query_has_not_read(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    holder, query = Query(broker), started(stack, broker)
    settle(holder, query)
    for log in logs:
        log.append(b"more")
    query.reader.prepareForTriggerAvailableNow()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_to_the_end, query)
        while not query.read.keys() >= {(each, 10) for each in query.assigned}:
            time.sleep(0.01)
        assert not running.done()
        holder.vanish(broker)
        running.result(PATIENCE_SECONDS)
    assert holder.read + query.read == Counter(everything(logs))


def test_a_run_ends_where_the_others_read_nothing(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    stack: ExitStack,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holder, query = started(stack, broker), started(stack, broker)
    settle(holder, query)
    # It may have got a partition in its last micro-batch, and have read nothing of it yet.
    while any(committed(broker, holder).get(each) != 10 for each in holder.assigned):
        holder.batch()
    for log in logs:
        log.append(b"more")
    held = sorted(holder.assigned)
    over_after(monkeypatch, "wait_for_others", 500)
    run_to_the_end(query)
    assert {where for where, offset in query.read if offset == 10} == query_part(held)
    (warning,) = (each.getMessage() for each in caplog.records if "left to them" in each.message)
    assert all(f"{each} at offset 10 of 11" in warning for each in held)


def query_part(held: list[TopicPartition]) -> set[TopicPartition]:
    return {TopicPartition("a", each) for each in range(PARTITIONS)} - set(held)


def test_what_others_committed_meanwhile_is_not_taken_back(
    broker: MemoryBroker, logs: list[PartitionLog], stack: ExitStack
) -> None:
    first = Query(broker)
    settle(first)
    first.vanish(broker)
    ends = {TopicPartition("a", each): 10 for each in range(PARTITIONS)}
    query = Query(broker)
    query.reader._planner.client.run(commit_offsets(query.reader._planner.client, "g", ends))
    # The query was killed in a micro-batch. The end of the replay must not be committed.
    replayed = started(stack, broker, start={"version": 2, "offsets": {"a": {"0": 5}}})
    query.stop()
    settle(replayed)
    assert committed(broker, replayed) == ends


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kafka.group.id": ""}, "kafka.group.id"),
        ({"startingOffsets": '{"a":{"0":1}}'}, "'startingOffsets': names partitions"),
        ({"partitions": "0"}, "'managedGroup': is given, and 'subscribe' names partitions"),
        ({"kafka.partition.assignment.strategy": "best"}, "There are range"),
        ({"kafka.heartbeat.interval.ms": "60000"}, "too long for a session"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        parsed(**QUICK | options)


def test_a_batch_is_no_member() -> None:
    with pytest.raises(ConfigurationError, match="'managedGroup'"):
        KafkaBatchReader(parsed(**QUICK))


@EACH_SPARK
@pytest.mark.parametrize("seed", range(12))
def test_whatever_comes_and_goes_nothing_is_lost(
    broker: MemoryBroker, logs: list[PartitionLog], seed: int, earlier: bool
) -> None:
    """Queries start, stop, vanish and restart at random, while records are written."""
    chance = random.Random(seed)
    running = [Query(broker, earlier=earlier)]
    stopped: list[Query] = []
    for _ in range(25):
        what = chance.choice(["batch"] * 6 + ["write", "start", "stop", "vanish", "restart"])
        if what == "write":
            chance.choice(logs).append(*[b"x"] * chance.randint(1, 5))
        elif what == "start" and len(running) < 3:
            running.append(Query(broker, earlier=earlier))
        elif what in ("stop", "vanish") and len(running) > 1:
            gone = running.pop(chance.randrange(len(running)))
            gone.batch(finished=chance.random() < 0.5)
            stopped.append(gone)
            if what == "stop":
                gone.stop()
            else:
                gone.vanish(broker)
        elif what == "restart" and stopped and len(running) < 3:
            before = stopped.pop(chance.randrange(len(stopped)))
            again = Query(broker, start=before.offset, earlier=earlier)
            again.read = before.read
            running.append(again)
        for query in running:
            query.batch()
    settle(*running)
    settle(*running)
    read = sum((query.read for query in (*running, *stopped)), Counter())
    for query in running:
        query.stop()
    assert set(read) == everything(logs)
