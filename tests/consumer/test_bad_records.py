"""Records that a deserializer refuses: what comes before and after them, and what is committed."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source import ConsumerRecord, KafkaConsumer, RecordDeserializationError
from spark_kafka_source.errors import ConfigurationError, CorruptRecordError
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.records import Record
from spark_kafka_source.records.encode import with_crc
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import IN_GROUP, T0, T1, T2, consuming, fill, poll_until

pytestmark = pytest.mark.memory(nodes=3)

BAD = b"bad"
COMMITTING = IN_GROUP | {"enable_auto_commit": True}


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    return broker.create_topic("t", 3)


def read(
    consumer: KafkaConsumer,
    done: Callable[[list[ConsumerRecord]], bool],
    on_error: Callable[[RecordDeserializationError], object] = lambda _: None,
) -> list[ConsumerRecord]:
    """Poll until `done`, and return the records. `on_error` gets the errors."""
    found: list[ConsumerRecord] = []
    while not done(found):
        try:
            poll_until(consumer, lambda: done(found), found.extend)
        except RecordDeserializationError as failed:
            on_error(failed)
    return found


def first_error(consumer: KafkaConsumer) -> RecordDeserializationError:
    failures: list[RecordDeserializationError] = []
    read(consumer, lambda _: bool(failures), failures.append)
    return failures[0]


def test_the_records_before_a_bad_one_come_first_and_those_of_other_partitions_once(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"0", b"1", BAD, b"3", b"4")
    fill(broker, T1, 1)
    failures: list[RecordDeserializationError] = []

    def seek(failed: RecordDeserializationError) -> None:
        failures.append(failed)
        assert consumer.position(T0) == failed.offset
        consumer.seek(failed.topic_partition, failed.offset + 1)

    with consuming(broker, T0, T1, value_deserializer=int) as consumer:
        found = read(consumer, lambda found: len(found) == 14, seek)
        assert [each.value for each in found if each.partition == 0] == [0, 1, 3, 4]
        assert [each.value for each in found if each.partition == 1] == list(range(10))
        assert [(each.topic_partition, each.offset) for each in failures] == [(T0, 2)]


@pytest.mark.parametrize("commit", ["by itself", "by a call", "at the end"])
def test_nothing_is_committed_beyond_a_bad_record(
    broker: MemoryBroker, logs: list[PartitionLog], commit: str
) -> None:
    logs[0].append(b"0", b"1", BAD, b"3")
    logs[1].append(BAD)
    fill(broker, T2, 1)
    config = COMMITTING | {"auto_commit_interval_ms": 1 if commit == "by itself" else 100_000}
    with consuming(broker, value_deserializer=int, **config) as consumer:
        consumer.subscribe(["t"])
        read(consumer, lambda found: len(found) == 12)
        if commit == "by a call":
            consumer.commit()
        if commit == "by itself":
            read(consumer, lambda _: len(_committed(broker)) == 3)
        failed = first_error(consumer)
        assert failed.offset == consumer.position(failed.topic_partition)
    assert _committed(broker) == {T0: 2, T1: 0, T2: 10}


def _committed(broker: MemoryBroker) -> dict[TopicPartition, int]:
    with consuming(broker, **IN_GROUP) as consumer:
        found: dict[TopicPartition, OffsetAndMetadata | None] = consumer.committed([T0, T1, T2])
    return {each: at.offset for each, at in found.items() if at is not None}


def test_a_poll_ends_before_the_bad_record_and_says_where_to_go_on(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"0", b"1", BAD)
    with consuming(broker, T0, value_deserializer=int) as consumer:
        polls: list[Any] = []
        poll_until(consumer, lambda: bool(polls), lambda found: polls.extend([found] * bool(found)))
        assert [each.value for each in polls[0]] == [0, 1]
        assert polls[0].next_offsets[T0].offset == 2
        # A later look at the same records asks no deserializer again.
        assert [each.value for each in polls[0].of(T0)] == [0, 1]
        assert polls[0].to_arrow()["value"].to_pylist() == [b"0", b"1"]


def test_a_deserializer_that_heals_is_asked_again(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"0", b"1")
    calls: list[bytes] = []

    def heals(data: bytes) -> bytes:
        calls.append(data)
        if data == b"1" and calls.count(data) < 3:
            raise ConnectionError("away")
        return data

    failures: list[RecordDeserializationError] = []
    with consuming(broker, T0, value_deserializer=heals) as consumer:
        found = read(consumer, lambda found: len(found) == 2, failures.append)
    assert [each.offset for each in found] == [0, 1]
    assert [each.offset for each in failures] == [1, 1]
    assert calls == [b"0", b"1", b"1", b"1"]


def test_a_paused_or_revoked_partition_raises_nothing(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"0", BAD)
    with consuming(broker, T0, T1, value_deserializer=int) as consumer:
        read(consumer, lambda found: len(found) == 1)
        consumer.pause(T0)
        fill(broker, T1, 1)
        assert len(read(consumer, lambda found: len(found) == 10)) == 10
        consumer.resume(T0)
        assert first_error(consumer).offset == 1
        consumer.assign([T1])
        fill(broker, T1, 1)
        assert len(read(consumer, lambda found: len(found) == 10)) == 10


def test_only_the_records_of_a_poll_are_deserialized_and_each_once(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(*[Record(key=b"k", value=b"v"), Record(value=None), Record(key=b"", value=b"")])
    logs[0].append(b"x", b"y")
    calls: list[bytes] = []
    serdes = {"key_deserializer": calls.append, "value_deserializer": calls.append}
    with consuming(broker, T0, max_poll_records=2, **serdes) as consumer:
        read(consumer, lambda found: len(found) == 2)
        assert sorted(calls) == [b"k", b"v"]
        read(consumer, lambda found: len(found) == 2)
        assert sorted(calls) == [b"", b"", b"k", b"v", b"x"]
        calls.clear()
        consumer.seek(T0, 4)
        for record in consumer:
            assert (record.offset, record.value) == (4, None)
            break
        assert calls == [b"y"]


def test_the_key_of_a_record_is_bad_before_its_value(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(Record(key=b"1", value=BAD), Record(key=BAD, value=BAD))
    with consuming(broker, T0, value_deserializer=int, key_deserializer=int) as consumer:
        failed = first_error(consumer)
        assert (failed.offset, failed.field) == (0, "value")
        consumer.seek(T0, 1)
        failed = first_error(consumer)
        assert (failed.offset, failed.field) == (1, "key")


def test_the_error_has_the_record_as_it_came(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    headers = (("h", b"1"), ("n", None))
    logs[0].append(Record(key=b"k", value=BAD, headers=headers, timestamp_ms=1_000))
    with consuming(broker, T0, value_deserializer=int, key_deserializer=bytes.decode) as consumer:
        record = first_error(consumer).record
        assert record is not None
        assert (record.key, record.value, record.timestamp_ms) == (b"k", BAD, 1_000)
        assert (record.topic, record.partition, record.offset) == ("t", 0, 0)
        assert tuple(record.headers) == headers
        assert pickle.loads(pickle.dumps(first_error(consumer))).record == record


class Deserializer:
    """A deserializer as an object, as Kafka's are."""

    def __init__(self) -> None:
        self.configured: Any = None
        self.closed = 0

    def configure(self, configuration: dict[str, object], is_key: bool) -> None:
        self.configured = configuration, is_key

    def deserialize(self, topic: str, headers: list[tuple[str, bytes]], data: bytes) -> Any:
        return topic, dict(headers), data

    def close(self) -> None:
        self.closed += 1
        raise RuntimeError("close")


def test_objects_get_topic_and_headers_whatever_columns_are_asked_for(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(Record(key=b"\0\0\0\7", value=b"v", headers=(("h", b"1"),)), b"w")
    value = Deserializer()
    serdes = {"key.deserializer": "IntegerDeserializer", "value_deserializer": value}
    columns = ["key", "value"]
    with (
        pytest.raises(RuntimeError, match="close"),
        consuming(broker, T0, columns=columns, group_id="g", **serdes) as consumer,
    ):
        assert value.configured[0]["group_id"] == "g" and not value.configured[1]
        first, second = read(consumer, lambda found: len(found) == 2)
        assert (first.key, first.value) == (7, ("t", {"h": b"1"}, b"v"))
        assert second.value == ("t", {}, b"w")
        assert list(first.headers) == [] and first.timestamp_ms is None
        assert consumer.poll(0).to_arrow().column_names == columns
    assert value.closed == 1
    consumer.close()
    assert value.closed == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"value_deserializer": lambda: 1}, "'value_deserializer': is a function that cannot be"),
        ({"key_deserializer": 7}, "'key_deserializer': is of type int"),
        ({"key.deserializer": "KafkaAvroDeserializer"}, "'key.deserializer': found 'KafkaAvro"),
        ({"value_deserializer": "KafkaAvroDeserializer"}, "give 'value_format' as 'avro'"),
        ({"value.deserializer": int, "value_deserializer": int}, "is given twice"),
        ({"value_deserializer": int, "value_format": "string"}, "as well as 'value_format'"),
    ],
)
def test_what_is_no_deserializer_is_refused_when_the_consumer_is_made(
    given: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", **given)
    assert expected in str(refused.value)


# -- records that are bad in themselves ------------------------------------------------------------


def bad_time(log: PartitionLog) -> None:
    """The third record has a time that 64 bits of microseconds cannot hold."""
    log.append(b"0", b"1", Record(value=b"2", timestamp_ms=2**60), b"3")


def bad_crc(log: PartitionLog) -> None:
    """The second batch, of the third record, has a wrong checksum."""
    log.append(b"0", b"1")
    log.append(b"2")
    flipped = log.batches[1]
    log.batches[1] = flipped._replace(data=flipped.data[:-1] + bytes([flipped.data[-1] ^ 1]))
    log.append(b"3")


def bad_fields(log: PartitionLog) -> None:
    """The second batch has a record with a header that has no room."""
    log.append(b"0", b"1")
    log.append(b"2")
    log.append(b"3")
    cut = log.batches[1]
    log.batches[1] = cut._replace(data=with_crc(cut.data[:-1] + b"\2"))


@pytest.mark.parametrize("break_third", [bad_time, bad_crc, bad_fields])
@pytest.mark.parametrize("config", [{}, {"value_format": "string"}, {"value_deserializer": int}])
def test_a_corrupt_record_comes_after_the_good_ones_before_it(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    break_third: Callable[[PartitionLog], None],
    config: dict[str, Any],
) -> None:
    break_third(logs[0])
    fill(broker, T1, 1)
    found: list[tuple[int, int]] = []
    told = 0
    with consuming(broker, T0, T1, max_poll_records=3, **config) as consumer:
        while len(found) < 13:
            try:
                found += [(each.partition, each.offset) for each in consumer.poll(50)]
            except CorruptRecordError as failed:
                told += 1
                assert (failed.topic_partition, failed.offset) == (T0, 2)
                assert consumer.position(T0) == 2
                consumer.seek(T0, failed.offset + 1)
        assert told == 1
    assert sorted(found) == [(0, 0), (0, 1), (0, 3), *((1, each) for each in range(10))]


# -- loops that are left early ---------------------------------------------------------------------


def test_the_records_of_a_poll_count_as_handed_out_even_if_nobody_looks_at_them(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"0", b"1", b"2")
    with consuming(broker, T0, value_deserializer=int) as consumer:
        polls: list[Any] = []
        poll_until(consumer, lambda: bool(polls), lambda found: polls.extend([found] * bool(found)))
        for record in polls[0]:
            assert record.value == 0
            break
        assert consumer.position(T0) == 3


def test_of_an_iteration_only_the_yielded_records_count(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(b"0", b"1", BAD, b"3")
    with consuming(broker, T0, value_deserializer=int) as consumer:
        with pytest.raises(ZeroDivisionError):
            for record in consumer:
                1 // record.value
        assert consumer.position(T0) == 1
        assert next(iter(consumer)).value == 1
        with pytest.raises(RecordDeserializationError):
            next(iter(consumer))
        assert consumer.position(T0) == 2
        consumer.seek(T0, 3)
        assert next(iter(consumer)).value == 3


# -- any bad records -------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    bad=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 11), st.booleans()), max_size=12),
    batch=st.integers(1, 12),
    most=st.integers(1, 40),
    iterates=st.booleans(),
)
def test_wherever_bad_records_are_each_other_record_comes_once(
    bad: set[tuple[int, int, bool]], batch: int, most: int, iterates: bool
) -> None:
    """In order, with each bad one told once, and no position beyond one that was not told."""
    wrong = {(partition, offset) for partition, offset, _ in bad}
    with MemoryBroker(1) as broker:
        for log, partition in zip(broker.create_topic("t", 3), range(3), strict=True):
            records = [
                Record(
                    key=BAD if (partition, offset, True) in bad else b"0",
                    value=BAD if (partition, offset, False) in bad else b"%d" % offset,
                )
                for offset in range(12)
            ]
            for start in range(0, 12, batch):
                log.append(*records[start : start + batch])
        serdes = {"key_deserializer": int, "value_deserializer": int}
        seen: list[tuple[int, int]] = []
        told: list[tuple[int, int]] = []
        with consuming(broker, T0, T1, T2, max_poll_records=most, **serdes) as consumer:
            while len(seen) + len(told) < 36:
                try:
                    for record in consumer if iterates else consumer.poll(50):
                        assert record.value == record.offset
                        seen.append((record.partition, record.offset))
                        if len(seen) + len(told) == 36:
                            break
                except RecordDeserializationError as failed:
                    place = failed.topic_partition.partition, failed.offset
                    told.append(place)
                    assert consumer.position(failed.topic_partition) == failed.offset
                    consumer.seek(failed.topic_partition, failed.offset + 1)
            assert [consumer.position(each) for each in (T0, T1, T2)] == [12] * 3
    assert sorted(told) == sorted(wrong)
    for partition in range(3):
        expected = [(partition, each) for each in range(12) if (partition, each) not in wrong]
        assert [each for each in seen if each[0] == partition] == expected
