"""Parcels: records of one topic on their way into batches, and the futures of their records."""

import random
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from spark_kafka_source.errors import ClosedError, KafkaTimeoutError
from spark_kafka_source.producer import BufferFullError, RecordMetadata, SendFuture
from spark_kafka_source.producer.accumulator import Accumulator
from spark_kafka_source.producer.delivery import Delivery, Outcome, Run
from spark_kafka_source.producer.hashes import murmur2_of
from spark_kafka_source.producer.parcel import Parcel, SentRow
from spark_kafka_source.producer.placing import _FEW_RECORDS
from spark_kafka_source.testing.memory import MemoryBroker
from tests.consumer.consumers import eventually
from tests.producer.test_accumulator import accumulator_of
from tests.producer.writing import HOUR_MS, IN_TIME, T0, T1, producing, written

pytestmark = pytest.mark.memory(topics={"t": 1})

LOST = ClosedError("it is lost")
SIZE = 100
"""The stated size of each record."""


def row(number: int, partition: int | None = None) -> SentRow:
    return b"%d" % number, None, (), 1_000 + number, SIZE, partition


def parcel_of(count: int) -> tuple[Parcel, list[SendFuture]]:
    parcel = Parcel("t", 1_000)
    parcel.rows = [row(each) for each in range(count)]
    return parcel, [SendFuture(parcel, each) for each in range(count)]


def take(parcel: Parcel) -> None:
    rows = parcel.take_rows()
    parcel.facts = [each[3] for each in rows], [len(each[0] or b"") for each in rows], [-1] * 9


def delivered(where: Any, first: int, count: int, offset: int) -> Delivery:
    delivery = Delivery(where)
    delivery.closed(count)
    delivery.add(Outcome(first, count, offset, -1, None))
    return delivery


def add(accumulator: Accumulator, *numbers: int, topic: str = "t") -> Parcel:
    for number in numbers:
        accumulator.add(topic, row(number))
    return accumulator.parcels()[-1]


# -- a parcel --------------------------------------------------------------------------------------


def test_taken_records_are_no_longer_held() -> None:
    parcel, _ = parcel_of(2)
    assert parcel.take_rows() == [row(0), row(1)]
    assert not parcel.rows


def test_each_record_is_where_the_run_is_that_it_is_in() -> None:
    parcel, futures = parcel_of(5)
    take(parcel)
    one, other = delivered(T0, 0, 10, 100), delivered(T1, 0, 2, 7)
    parcel.place([Run(one, 4, 3, np.array([3, 0, 4])), Run(other, 0, 2, np.array([2, 1]))])
    found = [each.result(0) for each in futures]
    assert [(each.partition, each.offset) for each in found] == [
        (0, 105),
        (1, 8),
        (1, 7),
        (0, 104),
        (0, 106),
    ]
    assert found[3] == RecordMetadata("t", 0, 104, 1_003, 1, -1)


def test_a_record_without_a_place_is_waited_for() -> None:
    parcel, (future,) = parcel_of(1)
    assert not future.done()
    with pytest.raises(KafkaTimeoutError, match=r"topic 't' within 0\.001 s"):
        future.result(0.001)
    assert not parcel.wait(0.001)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(future.result(IN_TIME).offset))
    thread.start()
    take(parcel)
    parcel.place([Run(delivered(T0, 0, 1, 9), 0, 1, range(1))])
    thread.join()
    assert found == [9]
    assert parcel.wait(0)


def test_callbacks_come_in_the_order_of_the_records_once_they_are_written() -> None:
    parcel, futures = parcel_of(3)
    said: list[Any] = []
    for each in futures:
        each.tell(lambda metadata, error: said.append(metadata and metadata.offset))
        each.add_done_callback(said.append)
    delivery = Delivery(T0)
    delivery.closed(3)
    take(parcel)
    parcel.place([Run(delivery, 0, 3, range(3))])
    assert not said
    delivery.add(Outcome(0, 3, 10, -1, None))
    assert said == [10, futures[0], 11, futures[1], 12, futures[2]]
    futures[1].add_done_callback(said.append)
    assert said[-1] is futures[1]


def test_functions_of_a_split_batch_hear_their_own_outcomes() -> None:
    parcel, said = Parcel("t", 1_000), list[Any]()
    for number in range(5):  # The records 2 and 4 of the delivery are of another parcel.
        told = None if number == 1 else lambda place, error: said.append(error or place.offset)
        parcel.add(row(number), told)
    take(parcel)
    delivery = Delivery(T0)
    delivery.closed(6)
    rows = np.array([3, 1, 0, 4]), np.array([2])
    parcel.place([Run(delivery, 0, 4, rows[0]), Run(delivery, 5, 1, rows[1])])
    delivery.add(Outcome(3, 3, 70, -1, None))
    delivery.add(Outcome(0, 3, -1, -1, LOST))
    assert said == [LOST, LOST, 70, 72]


def test_a_function_of_an_interrupted_call_is_not_told_of_another_record() -> None:
    class Interrupted(list[Any]):
        def append(self, _: object) -> None:
            raise KeyboardInterrupt

    parcel, said = Parcel("t", 1_000), list[Any]()
    parcel.rows = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        parcel.add(row(0), lambda *_: said.append("interrupted"))
    parcel.rows = []
    parcel.add(row(0), None)
    take(parcel)
    parcel.place([Run(delivered(T0, 0, 1, 9), 0, 1, np.array([0]))])
    assert not said


@pytest.mark.parametrize("is_begun", [True, False])
def test_records_that_cannot_be_placed_fail_and_the_others_do_not(is_begun: bool) -> None:
    parcel, futures = parcel_of(3)
    runs: Sequence[Run] = ()
    if is_begun:
        take(parcel)
        runs = [Run(delivered(T0, 0, 1, 9), 0, 1, np.array([1]))]
    parcel.place([*runs, parcel.lost(runs, LOST)])
    errors = [each.exception(0) for each in futures]
    assert errors == [LOST, None if is_begun else LOST, LOST]


def test_where_all_is_placed_nothing_is_lost() -> None:
    parcel, _ = parcel_of(1)
    runs = [Run(delivered(T0, 0, 1, 9), 0, 1, range(1))]
    assert parcel.lost(runs, LOST).count == 0


# -- parcels in the accumulator --------------------------------------------------------------------


def placed_in(accumulator: Accumulator) -> list[list[bytes | None]]:
    """Have the accumulator note the keys of each parcel that it places."""
    found: list[list[bytes | None]] = []

    def place(parcel: Parcel) -> None:
        found.append([each[0] for each in parcel.rows])
        accumulator.placed(parcel, [parcel.lost((), LOST)])

    accumulator.place = place
    return found


def test_a_parcel_is_placed_when_it_is_full_or_has_waited() -> None:
    accumulator = accumulator_of(batch_size=300)
    placed = placed_in(accumulator)
    add(accumulator, 0, 1)
    parcel = add(accumulator, 7, topic="other")
    assert accumulator.place_due_parcels() == accumulator.parcels()[0].created_at_seconds + 3_600
    assert placed == []
    add(accumulator, 2)
    add(accumulator, 3)
    accumulator.place_due_parcels()
    assert placed == [[b"0", b"1", b"2"]]
    parcel.created_at_seconds -= 3_600
    accumulator.place_due_parcels()
    assert placed == [[b"0", b"1", b"2"], [b"7"]]
    assert [each.topic for each in accumulator.parcels()] == ["t"]


def test_a_parcel_takes_room_in_blocks_and_gives_back_the_rest() -> None:
    accumulator = accumulator_of(buffer_memory=64_000, max_block_ms=0)
    placed_in(accumulator)
    for number in range(10):
        add(accumulator, number)
        assert accumulator.memory.free == 63_000
    add(accumulator, 10)
    assert accumulator.memory.free == 62_000
    assert [len(each.rows) for each in accumulator.parcels()] == [11]
    accumulator.producer_thread = threading.current_thread()
    accumulator.place_earlier("t")
    assert accumulator.memory.free == 64_000


def test_all_of_the_room_is_used_before_a_record_is_refused() -> None:
    accumulator = accumulator_of(buffer_memory=1_000, max_block_ms=0)
    placed_in(accumulator)
    for number in range(10):
        add(accumulator, number, topic=f"topic-{number}")
    with pytest.raises(BufferFullError):
        add(accumulator, 10)
    assert len(accumulator.parcels()) == 10


def test_what_is_refused_or_held_is_not_added() -> None:
    accumulator = accumulator_of()
    add(accumulator, 0)
    for refuse in (accumulator.hold, accumulator.refuse):
        refuse(ClosedError("not now"))
        for topic in ("t", "other"):
            with pytest.raises(ClosedError, match="not now"):
                add(accumulator, 1, topic=topic)
    assert [len(each.rows) for each in accumulator.parcels()] == [1]


def test_records_that_must_go_first_are_waited_for_by_other_threads_only() -> None:
    accumulator = accumulator_of(max_block_ms=1)
    placed = placed_in(accumulator)
    accumulator.place_earlier("t")
    add(accumulator, 0)
    with pytest.raises(KafkaTimeoutError, match="topic 't' were not sent within 1 ms"):
        accumulator.place_earlier("t")
    add(accumulator, 1)
    accumulator.producer_thread = threading.current_thread()
    accumulator.place_earlier("t")
    assert placed == [[b"0"], [b"1"]]


def test_the_room_of_a_record_that_is_interrupted_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accumulator = accumulator_of(buffer_memory=1_000)
    placed_in(accumulator)

    def interrupt(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(accumulator, "_parcel_for", interrupt)
    with pytest.raises(KeyboardInterrupt):
        add(accumulator, 0)
    assert accumulator.memory.free == 1_000


# -- records in batches ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7, _FEW_RECORDS, _FEW_RECORDS + 1, 3_000])
def test_each_record_of_many_is_where_its_future_and_its_function_say(
    count: int, broker: MemoryBroker
) -> None:
    """However many records come at once: few are encoded one by one, many as columns."""
    logs = broker.cluster.create_topic("t", 3)
    told: dict[int, RecordMetadata | None] = {}
    chance = random.Random(count)
    sent = []
    with producing(broker, linger_ms=HOUR_MS, delivery_timeout_ms=2 * HOUR_MS) as producer:
        for number in range(count):
            row: dict[str, Any] = {
                "key": chance.choice([None, b"", b"key-%d" % chance.randrange(9)]),
                "value": chance.choice([None, b"", b"%d" % number]),
                "headers": chance.choice([None, [("n", b"%d" % number), ("none", None)]]),
                "timestamp_ms": 1_000 + number,
                "partition": chance.choice([None, None, 2]),
            }
            told_here = partial(lambda at, metadata, _: told.update({at: metadata}), number)
            sent.append((row, producer.send("t", **row, on_delivery=told_here)))
        producer.flush(IN_TIME)
        eventually(lambda: len(told) == count)
    found_in = [written(each) for each in logs]
    for number, (row, future) in enumerate(sent):
        metadata = future.result(0)
        assert metadata == told[number]
        found = found_in[metadata.partition][metadata.offset]
        assert (found.key, found.value) == (row["key"], row["value"])
        assert found.timestamp_ms == metadata.timestamp_ms == row["timestamp_ms"]
        assert list(found.headers) == list(row["headers"] or ())
        assert metadata.serialized_key_size == (-1 if row["key"] is None else len(row["key"]))
        assert metadata.serialized_value_size == (-1 if row["value"] is None else len(row["value"]))
        if row["partition"] is not None:
            assert metadata.partition == row["partition"]
        elif row["key"] is not None:
            assert metadata.partition == (murmur2_of(row["key"]) & 0x7FFFFFFF) % 3
    assert sum(map(len, found_in)) == count
