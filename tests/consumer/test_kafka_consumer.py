"""Records of a `KafkaConsumer` with assigned partitions, on an in-memory broker."""

import contextlib
import itertools
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from spark_kafka_source.consumer import reading
from spark_kafka_source.consumer.deserializers import RecordDeserializationError
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.consumer.start_offsets import StartOffsets, StartPolicies
from spark_kafka_source.consumer.waiting import WakeupError
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ConfigurationError,
    CorruptRecordError,
    KafkaTimeoutError,
    LocalError,
    error_named,
)
from spark_kafka_source.fetch import OffsetAndEpoch, reader
from spark_kafka_source.fetch.offset_reset import NoOffsetError
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.records import Record, TimestampType
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import (
    PATIENCE_MS,
    T0,
    T1,
    T2,
    clients_threads,
    consuming,
    eventually,
    fetches,
    fill,
    of,
    places,
    poll_until,
    polled,
)

pytestmark = pytest.mark.memory(nodes=3)

HOUR_MS = 3_600_000


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    return broker.create_topic("t", 3)


# -- records ---------------------------------------------------------------------------------------


def test_records_come_in_order_from_the_beginning(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 3)
    with consuming(broker, T0) as consumer:
        assert polled(consumer, 30) == of(T0, range(30))
        assert consumer.position(T0) == 30
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(30, 40))


def test_a_poll_waits_no_longer_than_told_and_brings_nothing(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    with consuming(broker, T0) as consumer:
        assert len(consumer.poll(timeout_ms=20)) == 0
        assert consumer.poll(timeout_ms=0).to_arrow().num_rows == 0


def test_a_record_that_comes_ends_the_wait(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    with consuming(broker, T0, fetch_max_wait_ms=PATIENCE_MS) as consumer:
        consumer.poll(timeout_ms=50)
        threading.Timer(0.05, lambda: fill(broker, T0, 1)).start()
        assert len(consumer.poll(timeout_ms=PATIENCE_MS)) == 10


@pytest.mark.parametrize("most", [1, 3, 10, 7])
def test_no_poll_brings_more_than_max_poll_records(
    broker: MemoryBroker, logs: list[PartitionLog], most: int
) -> None:
    """This holds across batches, fetches and partitions. Each record comes once."""
    for where in (T0, T1):
        fill(broker, where, 3)
    with consuming(broker, T0, T1, max_poll_records=most) as consumer:
        sizes: list[int] = []
        found: list[Any] = []

        def hear(records: Any) -> None:
            sizes.append(len(records))
            found.extend(places(records))

        poll_until(consumer, lambda: len(found) >= 60, hear)
        assert max(sizes) <= most
        for where in (T0, T1):
            assert [each for each in found if each[0] == where] == of(where, range(30))


def test_partitions_take_turns() -> None:
    """A partition that always has more records does not block the others."""
    with MemoryBroker() as broker:
        broker.create_topic("t", 3)
        fill(broker, T0, 50, 20)
        fill(broker, T1, 1)
        fill(broker, T2, 1)
        with consuming(broker, T0, T1, T2, max_poll_records=100) as consumer:
            assert {where for where, _ in polled(consumer, 250)} == {T0, T1, T2}


def test_at_most_two_fetches_of_a_partition_wait_to_be_read(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 20)
    with consuming(broker, T0, max_poll_records=1, max_partition_fetch_bytes=1) as consumer:
        polled(consumer, 3)
        for _ in range(5):
            consumer.poll(timeout_ms=1)
        asked = {offset for _, _, partitions in fetches(broker) for _, offset in partitions}
        assert asked <= {0, 10, 20}


def test_paused_partitions_keep_what_is_here_until_they_are_resumed(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    with consuming(broker, T0, T1, max_poll_records=1) as consumer:
        first = polled(consumer, 2)
        consumer.pause(T0)
        assert consumer.paused() == {T0}
        got = [each for each in first if each[0] == T0]
        rest = polled(consumer, 10 - (len(first) - len(got)))
        assert {where for where, _ in rest} == {T1}
        # The answer to the fetch before the pause has come in by then.
        fetcher = consumer._reading._reader.fetcher
        eventually(lambda: all(each.is_over() for each in fetcher.in_flight))
        asked = len(fetches(broker))
        consumer.poll(timeout_ms=120)
        assert all(0 not in dict(each) for _, _, each in fetches(broker)[asked:])
        consumer.resume(T0)
        got += polled(consumer, 10 - len(got))
        assert got == of(T0, range(10))


def test_a_seek_forgets_what_is_here_and_what_is_on_its_way(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 3)
    with consuming(broker, T0, max_poll_records=5, max_partition_fetch_bytes=1) as consumer:
        polled(consumer, 5)
        held = broker.hold(FetchRequest)
        consumer.poll(timeout_ms=0)
        consumer.seek(T0, 12)
        held.release()
        assert polled(consumer, 5) == of(T0, range(12, 17))
        consumer.seek(T0, 3)
        assert consumer.position(T0) == 3
        assert polled(consumer, 5) == of(T0, range(3, 8))


def test_a_seek_while_the_very_first_fetch_is_in_flight(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 2)
    with consuming(broker, T0) as consumer:
        held = broker.hold(FetchRequest)
        consumer.poll(timeout_ms=50)
        consumer.seek(T0, 15)
        held.release()
        assert polled(consumer, 5) == of(T0, range(15, 20))


def test_to_the_beginning_and_to_the_end(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    fill(broker, T0, 1)
    logs[0].log_start_offset = 4
    with consuming(broker, T0, auto_offset_reset="none") as consumer:
        consumer.seek_to_beginning()
        assert consumer.position(T0) == 4
        consumer.seek_to_end(T0)
        assert consumer.position(T0) == 10
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10, 20))


def test_who_is_assigned_anew_goes_on_where_it_stood(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    with consuming(broker, T0, max_poll_records=5) as consumer:
        polled(consumer, 5)
        consumer.assign([T0, T1])
        found = polled(consumer, 15)
        assert [each for each in found if each[0] == T0] == of(T0, range(5, 10))
        consumer.assign([])
        with pytest.raises(LocalError, match="nothing to read"):
            consumer.poll(timeout_ms=0)


def test_compacted_and_empty_batches_move_the_position(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(Record(value=b"a", offset_delta=2), Record(value=b"b", offset_delta=7))
    logs[0].append_marker(1, commit=True)
    with consuming(broker, T0) as consumer:
        assert polled(consumer, 2) == [(T0, 2), (T0, 7)]
        poll_until(consumer, lambda: consumer.position(T0) == 9)


def test_what_was_not_committed_is_not_seen(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    logs[0].append(b"a", producer_id=5, transactional=True)
    logs[0].append_marker(5, commit=False)
    logs[0].append(b"b")
    with consuming(broker, T0, isolation_level="read_committed") as consumer:
        assert polled(consumer, 1) == [(T0, 2)]


# -- one by one ------------------------------------------------------------------------------------


def test_records_have_all_that_kafka_keeps(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    logs[0].append(Record(b"k", b"v", [("h", b"1"), ("h", None)], 1_234_567_890_123))
    logs[0].append(Record(None, None))
    with consuming(broker, T0) as consumer:
        first, second = next(iter(consumer)), None
        for second in consumer:  # noqa: B007
            break
        assert first == (
            "t",
            0,
            0,
            1_234_567_890_123,
            TimestampType.CREATE_TIME,
            b"k",
            b"v",
            [("h", b"1"), ("h", None)],
            None,
            None,
        )
        assert second is not None
        assert (second.key, second.value, second.headers) == (None, None, [])


def test_who_stops_in_the_midst_of_a_poll_goes_on_there(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    with consuming(broker, T0, T1) as consumer:
        found = []
        for _ in range(20):
            for record in consumer:
                found.append((TopicPartition(record.topic, record.partition), record.offset))
                break
        for where in (T0, T1):
            assert [each for each in found if each[0] == where] == of(where, range(10))


def test_positions_move_with_each_record_of_an_iteration(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    """So a commit within the iteration does not cover unseen records."""
    fill(broker, T0, 2)
    with consuming(broker, T0) as consumer:
        for expected, record in zip(range(20), consumer, strict=False):
            assert record.offset == expected
            assert consumer.position(T0) == expected + 1


def test_a_pause_within_an_iteration_loses_nothing(broker: MemoryBroker) -> None:
    first, second = broker.create_topic("paused", 2)
    first.append(*[b"x"] * 10)
    here, other = TopicPartition("paused", 0), TopicPartition("paused", 1)
    seen = []
    with KafkaConsumer(bootstrap_servers=str(broker.address()), enable_auto_commit=False) as reader:
        reader.assign([here, other])
        reader.seek_to_beginning()
        for record in reader:
            where = TopicPartition(record.topic, record.partition)
            seen.append((where, record.offset))
            if seen[-1] == (here, 3):
                reader.pause(here)
                # Only now: this partition's last record comes after the pause.
                second.append(*[b"x"] * 10)
            if seen[-1] == (other, 9):
                reader.resume(here)
            if len(seen) == 20:
                break
    assert seen == [
        *[(here, offset) for offset in range(4)],
        *[(other, offset) for offset in range(10)],
        *[(here, offset) for offset in range(4, 10)],
    ]


def test_a_seek_and_a_pause_hold_within_an_iteration(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 1)
    with consuming(broker, T0) as consumer:
        seen = []
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 2 and len(seen) == 3:
                consumer.seek(T0, 7)
            if record.offset == 9:
                break
        assert seen == [0, 1, 2, 7, 8, 9]
        consumer.seek(T0, 0)
        for record in consumer:
            if record.offset == 3:
                consumer.pause(T0)
                break
        assert len(consumer.poll(timeout_ms=60)) == 0
        consumer.resume(T0)
        assert polled(consumer, 6) == of(T0, range(4, 10))


def test_after_the_records_of_a_poll_the_position_is_behind_what_is_not_shown(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"a", b"b")
    logs[0].append_marker(1, commit=True)
    with consuming(broker, T0) as consumer:
        records = iter(consumer)
        assert [next(records).offset, next(records).offset] == [0, 1]
        assert consumer.position(T0) == 2
        consumer.wakeup()
        with pytest.raises(WakeupError):
            next(records)
        assert consumer.position(T0) == 3


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_partition_that_is_given_up_within_an_iteration_yields_no_more(
    broker: MemoryBroker, logs: list[PartitionLog], comes_back: bool
) -> None:
    """A partition that is assigned again begins at the start of its log, not where it was."""
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    seen: dict[TopicPartition, list[int]] = {T0: [], T1: []}
    with consuming(broker, T0, T1) as consumer:
        given_up: TopicPartition | None = None
        for record in consumer:
            where = TopicPartition(record.topic, record.partition)
            seen[where].append(record.offset)
            if record.offset == 2 and given_up is None:
                given_up = where
                consumer.assign({T0, T1} - {where})
                if comes_back:
                    consumer.assign([T0, T1])
            if sum(map(len, seen.values())) == (23 if comes_back else 13):
                break
    assert given_up is not None
    again = range(10) if comes_back else ()
    assert seen.pop(given_up) == [0, 1, 2, *again]
    assert list(seen.values()) == [list(range(10))]


def test_a_deserializer_that_raises_names_the_record(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"1", b"2", b"x", b"4")
    with consuming(broker, T0, value_deserializer=int, key_deserializer=bytes.decode) as consumer:
        seen = []
        for _ in range(2):  # The error repeats until the user seeks.
            with pytest.raises(
                RecordDeserializationError, match=r"t-0 at offset 2: its value"
            ) as e:
                for record in consumer:
                    seen.append(record.value)
            assert isinstance(e.value.__cause__, ValueError)
            assert (e.value.topic_partition, e.value.offset, e.value.field) == (T0, 2, "value")
        assert seen == [1, 2]
        assert "(ValueError: invalid literal for int() with base 10: b'x')" in str(e.value)
        consumer.seek(T0, e.value.offset + 1)
        assert next(iter(consumer)).value == 4


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (KeyError("name"), "(KeyError: 'name')"),
        (RuntimeError(), "(RuntimeError)"),
        (ValueError("two\nlines"), r"(ValueError: two\nlines)"),
        (ValueError("x" * 10_000), "(ValueError: " + "x" * 200 + "...)"),
    ],
    ids=repr,
)
def test_why_a_record_cannot_be_deserialized(
    broker: MemoryBroker, logs: list[PartitionLog], raised: Exception, expected: str
) -> None:
    def refuse(_: bytes) -> None:
        raise raised

    logs[0].append(Record(key=b"k", value=b"v"))
    with (
        consuming(broker, T0, key_deserializer=refuse) as consumer,
        pytest.raises(RecordDeserializationError) as caught,
    ):
        next(iter(consumer))
    assert f"its key cannot be deserialized {expected}; seek to offset 1" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# -- first positions -------------------------------------------------------------------------------


def test_by_the_policy(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    now_ms = int(time.time() * 1000)
    logs[0].append(Record(value=b"old", timestamp_ms=now_ms - 7_200_000))
    logs[0].append(Record(value=b"new", timestamp_ms=now_ms - 600_000))
    expected = {"earliest": 0, "latest": 2, "by_duration:PT1H": 1, "by_duration:P1D": 0}
    expected["by_duration:PT1M"] = 2  # No record is so late, so this is the end.
    for policy, offset in expected.items():
        with consuming(broker, T0, auto_offset_reset=policy) as consumer:
            assert consumer.position(T0) == offset, policy


def test_nowhere(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    fill(broker, T0, 1)
    with consuming(broker, T0, T1, auto_offset_reset="none") as consumer:
        for _ in range(2):
            with pytest.raises(NoOffsetError, match=r"t-0, t-1.*'auto_offset_reset' is 'none'"):
                poll_until(consumer, lambda: False)
        with pytest.raises(NoOffsetError):
            consumer.position(T0)
        consumer.seek(T0, 5)
        consumer.seek(T1, 0)
        assert polled(consumer, 5) == of(T0, range(5, 10))


# -- several threads -------------------------------------------------------------------------------


def test_a_wakeup_before_a_poll_and_within_one(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    with consuming(broker, T0, fetch_max_wait_ms=PATIENCE_MS) as consumer:
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(timeout_ms=PATIENCE_MS)
        consumer.poll(timeout_ms=0)
        threading.Timer(0.05, consumer.wakeup).start()
        began = time.monotonic()
        with pytest.raises(WakeupError):
            consumer.poll(timeout_ms=PATIENCE_MS)
        assert time.monotonic() - began < PATIENCE_MS / 2000
        consumer.poll(timeout_ms=0)
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))


def test_two_threads_at_once_are_refused(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    with consuming(broker, T0, fetch_max_wait_ms=PATIENCE_MS) as consumer:
        errors: list[BaseException] = []

        def poll() -> None:
            try:
                consumer.poll(timeout_ms=PATIENCE_MS)
            except WakeupError as error:
                errors.append(error)

        thread = threading.Thread(target=poll)
        thread.start()
        broker.wait_for(FetchRequest)
        for use in (consumer.poll, consumer.commit, consumer.close, lambda: consumer.seek(T0, 1)):
            with pytest.raises(LocalError, match="another thread"):
                use()
        consumer.wakeup()
        thread.join()
        assert len(errors) == 1
        assert consumer.position(T0) == 0


def test_a_closed_one_cannot_be_used_but_closed(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    with consuming(broker, T0) as consumer:
        consumer.close()
        consumer.close()
        with pytest.raises(LocalError, match="closed"):
            consumer.poll()
        consumer.wakeup()


def test_close_is_bounded_while_brokers_hang(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 1)
    before = threading.enumerate()
    with consuming(broker, T0, group_id="g", max_poll_records=1) as consumer:
        polled(consumer, 1)
        for request_type in list(broker_requests()):
            broker.control(request_type, Action.SILENCE, times=None)
        began = time.monotonic()
        consumer.close(timeout_ms=300)
        assert time.monotonic() - began < PATIENCE_MS / 2000
        eventually(lambda: not clients_threads(before))


def broker_requests() -> Any:
    from spark_kafka_source.testing.memory import REQUESTS  # noqa: PLC0415

    return REQUESTS.values()


def test_wrong_arguments_are_named(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    with consuming(broker, T0) as consumer:
        with pytest.raises(LocalError, match=r"t-1 is not assigned.*t-0"):
            consumer.seek(T1, 0)
        with pytest.raises(LocalError, match="offset -1 of t-0"):
            consumer.seek(T0, -1)
        with pytest.raises(LocalError, match="assigned"):
            consumer.subscribe(["t"])
        with pytest.raises(ConfigurationError, match="group_id"):
            consumer.commit()
        with pytest.raises(ConfigurationError, match="group_id"):
            consumer.committed([T0])
    with pytest.raises(ConfigurationError, match="columns"):
        KafkaConsumer(bootstrap_servers="x:1", columns=["valu"])


# -- questions and counts --------------------------------------------------------------------------


def test_questions_to_the_cluster(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    logs[0].append(*(Record(value=b"v", timestamp_ms=each) for each in (1_000, 2_000, 3_000)))
    logs[0].log_start_offset = 1
    logs[0].fixed_last_stable_offset = 2
    with consuming(broker, isolation_level="read_committed") as consumer:
        assert set(consumer.list_topics()) == {"t"}
        assert consumer.partitions_for("t") == [T0, T1, T2]
        assert consumer.beginning_offsets([T0, T1]) == {T0: 1, T1: 0}
        assert consumer.end_offsets([T0]) == {T0: 2}
        found = consumer.offsets_for_times({T0: 1_500, T1: 0})
        assert found[T0].offset == 1
        assert found[T1] is None
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            consumer.partitions_for("none")
        with pytest.raises(LocalError, match="milliseconds"):
            consumer.offsets_for_times({T0: -1})
        broker.control(MetadataRequest, Action.SILENCE, times=None)
        with pytest.raises((KafkaTimeoutError, BootstrapError)):
            consumer.list_topics(timeout_ms=50)


def test_lag_and_counts(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    fill(broker, T0, 2)
    with consuming(broker, T0, max_poll_records=5) as consumer:
        assert consumer.current_lag(T0) is None
        polled(consumer, 5)
        assert consumer.current_lag(T0) == 15
        found = consumer.metrics()
        assert found["records-consumed-total"] == 5
        assert found["t-0.records-lag"] == found["records-lag-max"] == 15
        assert found["assigned-partitions"] == 1
        assert found["fetch-total"] >= 1
        assert found["bytes-consumed-total"] > 0


def test_any_thread_reads_the_metrics_while_partitions_come_and_go(
    broker: MemoryBroker, logs: list[PartitionLog], request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    with consuming(broker, T0) as consumer, ThreadPoolExecutor(1) as elsewhere:
        done = threading.Event()

        def read() -> int:
            times = 0
            while not done.is_set():
                assert consumer.metrics()["assigned-partitions"] in (0, 1, 2)
                times += 1
            return times

        reading = elsewhere.submit(read)
        for each in itertools.islice(itertools.cycle([[T0, T1], [T1], [], [T0]]), 20_000):
            consumer.assign(each)
        done.set()
        assert reading.result(PATIENCE_MS / 1000) > 0


# -- faults ----------------------------------------------------------------------------------------


def test_a_corrupt_record_costs_nothing_of_what_was_before_it_or_elsewhere(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 2)
    fill(broker, T1, 1)
    bad = logs[1].batches[0]
    logs[1].batches[0] = bad._replace(data=bad.data[:-1] + bytes([bad.data[-1] ^ 1]))
    fill(broker, T2, 2)
    with consuming(broker, T0, T1, T2, max_poll_records=7) as consumer:
        found: list[Any] = []
        errors = 0
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while len(found) < 40 or errors < 3:
            assert time.monotonic() < deadline, (found, errors)
            try:
                found += places(consumer.poll(timeout_ms=50))
            except CorruptRecordError as error:
                assert (error.topic_partition, error.offset) == (T1, 0)
                errors += 1
        for where in (T0, T2):
            assert [each for each in found if each[0] == where] == of(where, range(20))
        assert consumer.position(T1) == 0
        consumer.seek(T1, 10)
        fill(broker, T1, 1)
        assert polled(consumer, 10) == of(T1, range(10, 20))


@pytest.mark.parametrize("leave", ["seek", "pause", "assign"])
def test_the_error_of_a_record_is_not_raised_once_the_consumer_has_left_it(
    broker: MemoryBroker, logs: list[PartitionLog], leave: str
) -> None:
    """Records of another partition came first, so the error was kept for the next poll."""
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    bad = logs[1].batches[0]
    logs[1].batches[0] = bad._replace(data=bad.data[:-1] + bytes([bad.data[-1] ^ 1]))
    with consuming(broker, T0, T1) as consumer:
        _poll_beside_a_kept_error(consumer)
        if leave == "seek":
            consumer.seek(T1, 10)
        elif leave == "pause":
            consumer.pause(T1)
        else:
            consumer.assign([T0])
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10, 20))


def _poll_beside_a_kept_error(consumer: KafkaConsumer) -> None:
    """Poll records of T0 until one poll has met the bad record of T1, too, and kept its error."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while consumer._reading._kept is None:
        assert time.monotonic() < deadline
        consumer.seek(T0, 0)
        with contextlib.suppress(CorruptRecordError):
            consumer.poll(timeout_ms=50)


def test_what_is_handed_out_is_not_lost_to_an_error_that_comes_after(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    """Positions are already beyond these records."""
    fill(broker, T0, 1)
    fill(broker, T1, 1)
    refused = error_named("TOPIC_AUTHORIZATION_FAILED")
    with consuming(broker, T0, T1) as consumer:
        found: list[Any] = []
        errors = 0
        broker.control(FetchRequest, refused, times=None, node_id=1)
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while errors < 2 or len(found) < 10:
            assert time.monotonic() < deadline, (found, errors)
            try:
                found += places(consumer.poll(timeout_ms=20))
            except BrokerError as error:
                assert error.error == refused
                errors += 1
        assert found == of(T0, range(10))


def test_one_partition_without_a_leader_does_not_keep_the_others_waiting(
    broker: MemoryBroker, logs: list[PartitionLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This also holds while its first position is unknown. A wait for it would take an hour."""
    for module in (reading, reader):
        monkeypatch.setattr(module, "LOOKUP_MS", HOUR_MS)
    fill(broker, T0, 1)
    broker.stop(1)
    with consuming(broker, T0, T1, default_api_timeout_ms=HOUR_MS) as consumer:
        assert polled(consumer, 10) == of(T0, range(10))
        fill(broker, T1, 1)
        broker.start(1)
        assert polled(consumer, 10) == of(T1, range(10))


def test_a_broker_over_its_quota_does_not_keep_the_others_waiting(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 1)
    with consuming(broker, T0, T1, fetch_max_wait_ms=1) as consumer:
        broker.cluster.throttle_time_ms[FetchRequest] = HOUR_MS
        began = time.monotonic()
        assert polled(consumer, 10) == of(T0, range(10))
        consumer.poll(timeout_ms=100)
        assert time.monotonic() - began < PATIENCE_MS / 1000


def test_a_request_that_is_never_answered_is_given_up(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    """This holds even for a long poll."""
    fill(broker, T0, 1)
    broker.control(FetchRequest, Action.SILENCE)
    with consuming(broker, T0, request_timeout_ms=200) as consumer:
        began = time.monotonic()
        assert len(consumer.poll(timeout_ms=PATIENCE_MS)) == 10
        assert time.monotonic() - began < PATIENCE_MS / 2000


def test_an_answer_that_comes_while_it_is_asked_for_ends_the_wait(
    broker: MemoryBroker, logs: list[PartitionLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may answer before the consumer looks up from its request."""

    async def found_at_once(
        _: object,
        wanted: StartPolicies,
        found: dict[TopicPartition, OffsetAndEpoch],
        timeout_ms: int,
    ) -> None:
        found.update(dict.fromkeys(wanted, OffsetAndEpoch(0, -1)))

    fill(broker, T0, 1)
    monkeypatch.setattr(StartOffsets, "find", found_at_once)
    with consuming(broker, T0) as consumer:
        assert len(consumer.poll(timeout_ms=PATIENCE_MS)) == 10


def test_a_topic_that_is_yet_to_come_is_waited_for(broker: MemoryBroker) -> None:
    with consuming(broker, T0) as consumer:
        for _ in range(3):
            assert len(consumer.poll(timeout_ms=20)) == 0
        said = ""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while "UNKNOWN_TOPIC" not in said:  # On a busy machine no broker answers in time.
            assert time.monotonic() < deadline, said
            with pytest.raises((KafkaTimeoutError, BootstrapError, BrokerError)) as caught:
                consumer.position(T0, timeout_ms=100)
            said = str(caught.value)
        broker.create_topic("t")
        fill(broker, T0, 1)
        assert polled(consumer, 10) == of(T0, range(10))


def test_no_broker_at_all(broker: MemoryBroker, caplog: pytest.LogCaptureFixture) -> None:
    """A poll raises no error, as in Kafka's own consumer, but logs a warning."""
    broker.create_topic("t")
    broker.stop(0)
    with KafkaConsumer(bootstrap_servers="127.0.0.1:1", retry_backoff_ms=1) as consumer:
        consumer.assign([T0])
        assert len(consumer.poll(timeout_ms=50)) == 0
        poll_until(consumer, lambda: "127.0.0.1:1" in caplog.text)
    broker.start(0)


def test_nothing_is_asked_of_the_cluster_that_is_known(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    fill(broker, T0, 5)
    with consuming(broker, T0, max_partition_fetch_bytes=1) as consumer:
        polled(consumer, 50)
        assert len(broker.requests(MetadataRequest)) == 1
        assert len(broker.requests(ListOffsetsRequest)) == 1
