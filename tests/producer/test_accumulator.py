"""Waiting batches of each partition: size, `linger.ms`, memory, and the ends of waits."""

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.errors import ClosedError, LocalError
from spark_kafka_source.net import Address, Deadline, readable
from spark_kafka_source.producer import BufferFullError, ProducerConfig, ProducerId
from spark_kafka_source.producer.accumulator import Accumulator, Part
from spark_kafka_source.producer.batch import OpenBatch, PartitionQueue, ProducerBatch
from spark_kafka_source.producer.delivery import Run
from spark_kafka_source.records import EncodedBatch, Row, encode_columns
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.producer.writing import HOUR_MS, IN_TIME, T0, T1, T2
from tests.records.batches import rows_of

SIZE = 100
"""The stated size of each row."""


def config_of(**values: Any) -> ProducerConfig:
    known: dict[str, Any] = {"linger_ms": HOUR_MS, "delivery_timeout_ms": 2 * HOUR_MS}
    client = ClientConfig(bootstrap_servers=(Address("127.0.0.1", 9092),))
    return ProducerConfig(client, **known | values)


def accumulator_of(**values: Any) -> Accumulator:
    return Accumulator(config_of(**values))


@pytest.fixture
def accumulator() -> Iterator[Accumulator]:
    yield accumulator_of(batch_size=3 * SIZE)


def in_time() -> Deadline:
    return Deadline.after_ms(int(IN_TIME * 1_000))


def row(number: int) -> Row:
    return None, b"%d" % number, [], 5


def columns(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [b"%d" % each for each in numbers]})


def encoded(*numbers: int) -> EncodedBatch:
    (batch,) = encode_columns(columns(*numbers))
    return batch


def put(
    accumulator: Accumulator, *numbers: int, where: TopicPartition = T0, size: int = SIZE
) -> Run:
    """Add rows one by one. Return the place of the last one."""
    for number in numbers:
        (run,) = accumulator.append([Part(where, [row(number)], size)])
    return run


def put_columns(accumulator: Accumulator, *numbers: int, where: TopicPartition = T0) -> Run:
    rows = columns(*numbers)
    (run,) = accumulator.append([Part(where, rows, len(rows) * SIZE)])
    return run


def heads(accumulator: Accumulator, where: TopicPartition = T0) -> list[list[int]]:
    """Take all ready batches of a partition. Return the values of each batch."""
    queue = accumulator.queue(where)
    found = []
    while accumulator.head(queue) is not None:
        found.append(values_of(accumulator.pop_head(queue)))
    return found


def values_of(batch: ProducerBatch) -> list[int]:
    assert batch.encoded is not None
    return [int(each.value or b"-1") for each in rows_of(batch.encoded.to_bytes())]


# -- batches ---------------------------------------------------------------------------------------


def test_a_batch_takes_records_up_to_its_size(accumulator: Accumulator) -> None:
    put(accumulator, *range(7))
    assert heads(accumulator) == [[0, 1, 2], [3, 4, 5]]
    assert accumulator.queue(T0).open is not None


def test_a_record_that_does_not_fit_begins_the_next_batch(accumulator: Accumulator) -> None:
    put(accumulator, 0, 1)
    put(accumulator, 2, size=2 * SIZE)
    assert heads(accumulator) == [[0, 1]]
    put(accumulator, 3)
    assert heads(accumulator) == [[2, 3]]


def test_a_record_larger_than_a_batch_is_one_by_itself(accumulator: Accumulator) -> None:
    put(accumulator, 0)
    put(accumulator, 1, size=30 * SIZE)
    put(accumulator, 2)
    assert heads(accumulator) == [[0], [1]]


def test_a_batch_is_no_larger_than_the_whole_buffer() -> None:
    accumulator = accumulator_of(batch_size=10 * SIZE, buffer_memory=2 * SIZE)
    assert accumulator.sizes.of_records("t") == 2 * SIZE
    put(accumulator, 0, 1)
    assert heads(accumulator) == [[0, 1]]


def test_rows_and_columns_keep_the_order_in_which_they_were_given(accumulator: Accumulator) -> None:
    put(accumulator, 0)
    run = put_columns(accumulator, 1, 2)
    assert (run.first, run.count) == (1, 2)
    run = put_columns(accumulator, 3)
    assert put(accumulator, 4) == Run(run.delivery, 1, 1)
    put(accumulator, 5)
    assert heads(accumulator) == [[0, 1, 2], [3, 4, 5]]


def test_rows_of_several_partitions_are_added_at_once_and_wake_the_sender_once(
    accumulator: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(accumulator.wakeup, "wake", lambda: woken.append(1))
    parts = [
        Part(T0, [row(0), row(1)], 2 * SIZE),
        Part(T1, columns(2), SIZE, range(7, 8)),
        Part(T0, [row(3), row(4)], 2 * SIZE),
    ]
    runs = accumulator.append(parts)
    assert len(woken) == 1
    assert [(each.first, each.count, each.rows) for each in runs] == [
        (0, 2, None),
        (0, 1, range(7, 8)),
        (0, 2, None),
    ]
    assert runs[0].delivery is not runs[2].delivery, "all four rows do not fit into a batch"
    assert heads(accumulator) == [[0, 1]]
    accumulator.append(parts[1:2])
    assert len(woken) == 1, "no batch is new, and none is full"
    accumulator.close_open()
    assert (heads(accumulator), heads(accumulator, T1)) == ([[3, 4]], [[2, 2]])


def test_a_batch_that_the_thread_closes_has_another_step(accumulator: Accumulator) -> None:
    """Earlier parts of the same step have not seen it, such as the one that fails batches."""
    put(accumulator, 1)
    accumulator.wakeup.clear()
    queue = accumulator.queue(T0)
    assert accumulator.head(queue) is None
    assert not readable([accumulator.wakeup], Deadline.after_ms(0))
    accumulator.refuse(ClosedError("the producer is closed"))
    accumulator.wakeup.clear()
    assert accumulator.head(queue) is not None
    assert readable([accumulator.wakeup], in_time())


def test_of_several_parts_that_are_interrupted_none_is_half_added(
    accumulator: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = OpenBatch.append

    def interrupt(opened: OpenBatch, rows: Any, size: int) -> int:
        if opened.topic_partition == T1:
            raise KeyboardInterrupt
        return append(opened, rows, size)

    monkeypatch.setattr(OpenBatch, "append", interrupt)
    parts = [Part(each, [row(number)], SIZE) for number, each in enumerate((T0, T1, T2))]
    with pytest.raises(KeyboardInterrupt):
        accumulator.append(parts)
    monkeypatch.undo()
    put(accumulator, 3)
    put(accumulator, 4, where=T1)
    accumulator.close_open()
    assert [heads(accumulator, each) for each in (T0, T1)] == [[[0, 3]], [[4]]]


def test_a_whole_batch_goes_out_behind_what_was_given_before_it(accumulator: Accumulator) -> None:
    put(accumulator, 0, 1)
    run = accumulator.append_batch(T0, 3 * SIZE, lambda: encoded(2, 3))
    assert (run.first, run.count) == (0, 2)
    put(accumulator, 4)
    assert heads(accumulator) == [[0, 1], [2, 3]]
    assert run.delivery in accumulator.unfinished()


def test_partitions_have_batches_of_their_own(accumulator: Accumulator) -> None:
    put(accumulator, 0, 2, 4)
    put(accumulator, 1, where=T1)
    assert heads(accumulator) == [[0, 2, 4]]
    assert heads(accumulator, T1) == []
    assert (accumulator.queued(T0), accumulator.queued(T1)) == (0, 0)
    assert [each.topic_partition for each in accumulator.queues()] == [T1]


def test_an_open_batch_is_ready_after_linger_ms() -> None:
    accumulator = accumulator_of(linger_ms=0)
    put(accumulator, 0)
    assert heads(accumulator) == [[0]]
    patient = accumulator_of(linger_ms=1_000)
    put(patient, 0)
    opened = patient.queue(T0).open
    assert opened is not None
    assert heads(patient) == []
    assert patient.ready_at_seconds(opened) == opened.created_at_seconds + 1.0
    opened.created_at_seconds -= 1.0
    assert heads(patient) == [[0]]


def test_a_batch_that_another_thread_encodes_holds_back_those_behind_it(
    accumulator: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_encode = threading.Event()
    encode = OpenBatch.encode

    def slowly(opened: OpenBatch, *how: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            assert may_encode.wait(IN_TIME)
        return encode(opened, *how)

    monkeypatch.setattr(OpenBatch, "encode", slowly)
    thread = threading.Thread(target=put, args=[accumulator, 0, 1, 2], daemon=True)
    thread.start()
    eventually(lambda: accumulator.queued(T0) == 1)
    put(accumulator, 3, 4, 5)
    assert heads(accumulator) == []
    may_encode.set()
    thread.join()
    assert heads(accumulator) == [[0, 1, 2], [3, 4, 5]]


def test_a_batch_that_cannot_be_encoded_is_ready_to_fail_by_name(
    accumulator: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("too little")

    monkeypatch.setattr(OpenBatch, "encode", fail)
    put(accumulator, 0, 1, 2)
    head = accumulator.head(accumulator.queue(T0))
    assert head is not None
    assert isinstance(head.error, LocalError)
    assert str(head.error) == "a batch of t-0: MemoryError('too little')"


def test_what_is_sent_again_comes_before_what_is_new_in_the_first_order(
    accumulator: Accumulator,
) -> None:
    put(accumulator, *range(12))
    queue = accumulator.queue(T0)
    sent = [accumulator.pop_head(queue) for _ in range(3)]
    for order, batch in enumerate(sent, 1):
        batch.order = order
    accumulator.put_back(queue, [sent[2]])
    accumulator.put_back(queue, [sent[0]])
    queue.in_flight.append(sent[1])
    assert accumulator.batches(queue) == [sent[1], sent[0], sent[2], *list(queue.waiting)[2:]]
    accumulator.put_back(queue, [sent[1]])
    assert heads(accumulator) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_what_is_dropped_is_told_and_the_open_batch_stays(accumulator: Accumulator) -> None:
    put(accumulator, *range(7))
    queue = accumulator.queue(T0)
    second = list(queue.waiting)[1]
    assert accumulator.drop(queue, lambda each: each is not second) == [second]
    assert heads(accumulator) == [[0, 1, 2]]
    assert queue.open is not None


def test_a_leader_that_knows_no_batch_of_the_producer_gets_one_at_a_time() -> None:
    queue = PartitionQueue(T0)
    assert queue.most_in_flight > 5
    queue.begin_sequences(ProducerId(7, 0))
    assert queue.most_in_flight == 1
    queue.is_known = True
    assert queue.most_in_flight > 5
    queue.begin_sequences(ProducerId(7, 1))
    assert queue.most_in_flight == 1


# -- Ctrl-C ----------------------------------------------------------------------------------------


def test_a_batch_whose_encoding_is_interrupted_is_encoded_by_who_sends_it(
    accumulator: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    put(accumulator, 0, 1)
    monkeypatch.setattr(OpenBatch, "encode", interrupt)
    with pytest.raises(KeyboardInterrupt):
        put(accumulator, 2)
    assert readable([accumulator.wakeup], in_time())
    put(accumulator, 3, 4, 5)
    assert heads(accumulator) == [[0, 1, 2], [3, 4, 5]]


def test_a_record_whose_adding_is_interrupted_harms_no_other(
    accumulator: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(OpenBatch, "append", interrupt)
    with pytest.raises(KeyboardInterrupt):
        put(accumulator, 0)
    put(accumulator, 1)
    monkeypatch.setattr(OpenBatch, "close", interrupt)
    put(accumulator, 2)
    with pytest.raises(KeyboardInterrupt):
        put(accumulator, 3)
    put(accumulator, 4)
    assert heads(accumulator) == [[1, 2, 3]]
    assert len(accumulator.unfinished()) == 2


# -- memory ----------------------------------------------------------------------------------------


def test_the_room_of_a_batch_is_given_back_as_far_as_it_turns_out_smaller() -> None:
    accumulator = accumulator_of(batch_size=1_000, buffer_memory=10_000)
    put(accumulator, 1, size=1_000)
    queue = accumulator.queue(T0)
    batch = accumulator.pop_head(queue)
    assert batch.encoded is not None
    assert accumulator.memory.free == 10_000 - batch.encoded.size
    batch.delivered()
    accumulator.release(batch)
    accumulator.release(batch)
    assert accumulator.memory.free == 10_000
    assert not accumulator.unfinished()


def test_a_whole_batch_has_as_much_room_as_it_takes() -> None:
    accumulator = accumulator_of(buffer_memory=10_000, max_block_ms=0)
    accumulator.append_batch(T0, 1_000, lambda: encoded(1, 2))
    batch = accumulator.pop_head(accumulator.queue(T0))
    assert accumulator.memory.free == 10_000 - encoded(1, 2).size
    accumulator.release(batch)
    assert accumulator.memory.free == 10_000

    def fail() -> EncodedBatch:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        accumulator.append_batch(T0, 1_000, fail)
    with pytest.raises(BufferFullError):
        accumulator.append_batch(T0, 10_001, lambda: encoded(1))
    accumulator.hold(LocalError("not now"))
    with pytest.raises(LocalError, match="not now"):
        accumulator.append_batch(T0, 1_000, lambda: encoded(1))
    assert accumulator.memory.free == 10_000
    assert not accumulator.queues()


def test_a_batch_that_is_over_before_it_is_encoded_gives_its_room_back_once() -> None:
    accumulator = accumulator_of(batch_size=1_000, buffer_memory=10_000)
    put(accumulator, 1, size=900)
    queue = accumulator.queue(T0)
    assert queue.open is not None
    closed: list[tuple[OpenBatch, ProducerBatch]] = []
    accumulator._close(queue, queue.open, closed)
    ((_, batch),) = closed
    batch.failed(ClosedError("it is over"))
    accumulator.release(batch)
    accumulator._encode(closed)
    assert accumulator.memory.free == 10_000


def test_a_full_buffer_ends_linger_ms_and_wakes_whoever_sends() -> None:
    accumulator = accumulator_of(batch_size=3 * SIZE, buffer_memory=4 * SIZE)
    put(accumulator, 0, 1)
    put(accumulator, 2, 3, where=T1)
    accumulator.wakeup.clear()
    assert heads(accumulator) == []
    thread = threading.Thread(target=put, args=[accumulator, 4], daemon=True)
    thread.start()
    assert readable([accumulator.wakeup], in_time())
    assert accumulator.memory.is_exhausted
    queue = accumulator.queue(T0)
    batch = accumulator.head(queue)
    assert batch is not None
    accumulator.pop_head(queue)
    batch.delivered()
    accumulator.release(batch)
    thread.join()
    assert heads(accumulator, T1) == []


def test_where_there_is_no_room_in_time_nothing_is_taken() -> None:
    accumulator = accumulator_of(buffer_memory=2 * SIZE, batch_size=10 * SIZE, max_block_ms=0)
    put(accumulator, 0)
    with pytest.raises(BufferFullError):
        put(accumulator, 1, size=2 * SIZE)
    with pytest.raises(BufferFullError):
        accumulator.append([Part(T0, columns(1), 2 * SIZE)])
    assert accumulator.memory.free == SIZE
    put(accumulator, 2)
    assert heads(accumulator) == [[0, 2]]


def test_whoever_empties_the_buffer_does_not_wait_for_room_in_it() -> None:
    accumulator = accumulator_of(buffer_memory=SIZE, max_block_ms=HOUR_MS)
    put(accumulator, 0)
    accumulator.producer_thread = threading.current_thread()
    with pytest.raises(BufferFullError):
        put(accumulator, 1)
    with pytest.raises(LocalError, match="a callback of the producer cannot wait"):
        accumulator.flush(None)


# -- ends ------------------------------------------------------------------------------------------


def test_flush_makes_all_ready_and_waits_for_it_from_any_threads(accumulator: Accumulator) -> None:
    put(accumulator, 0)
    put(accumulator, 1, where=T1)
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda: found.append(accumulator.flush(in_time())), daemon=True)
        for _ in range(3)
    ]
    for each in threads:
        each.start()
    eventually(lambda: accumulator._flushing == 3)
    for where in (T0, T1):
        assert not found
        batch = accumulator.head(accumulator.queue(where))
        assert batch is not None
        accumulator.pop_head(accumulator.queue(where))
        batch.delivered()
        accumulator.release(batch)
    for each in threads:
        each.join()
    assert found == [True] * 3
    assert accumulator._flushing == 0


def test_flush_says_where_it_is_not_over_in_time(accumulator: Accumulator) -> None:
    assert accumulator.flush(Deadline.after_ms(0))
    put(accumulator, 0)
    assert not accumulator.flush(Deadline.after_ms(1))
    assert heads(accumulator) == [], "linger.ms counts again"


def test_what_is_refused_leaves_nothing_behind_and_the_first_reason_counts(
    accumulator: Accumulator,
) -> None:
    put(accumulator, 0)
    free = accumulator.memory.free
    accumulator.refuse(ClosedError("the producer is closed"))
    accumulator.refuse(LocalError("another reason"))
    with pytest.raises(ClosedError, match="the producer is closed"):
        put(accumulator, 1)
    with pytest.raises(ClosedError, match="the producer is closed"):
        accumulator.raise_if_refused()
    with pytest.raises(ClosedError):
        put_columns(accumulator, 1, where=T1)
    assert accumulator.memory.free == free
    assert heads(accumulator) == [[0]], "what is there is sent at once"


def test_what_is_held_is_refused_until_it_is_not(accumulator: Accumulator) -> None:
    accumulator.hold(LocalError("not now"))
    with pytest.raises(LocalError, match="not now"):
        put(accumulator, 0)
    assert accumulator.memory.free == accumulator.memory.size
    accumulator.raise_if_refused()
    accumulator.hold(None)
    put(accumulator, 1)
    accumulator.close_open()
    assert heads(accumulator) == [[1]]


def test_many_threads_lose_and_double_nothing() -> None:
    accumulator = accumulator_of(batch_size=7 * SIZE, buffer_memory=1_000 * SIZE)
    count, threads = 300, 4

    def fill(thread: int) -> None:
        for number in range(0, count, 2):
            put(accumulator, thread * count + number)
            put_columns(accumulator, thread * count + number + 1)

    found: list[int] = []
    filling = [threading.Thread(target=fill, args=[each], daemon=True) for each in range(threads)]
    for each in filling:
        each.start()
    while any(each.is_alive() for each in filling) or len(found) < count * threads:
        if not any(each.is_alive() for each in filling):
            accumulator.close_open()
        queue = accumulator._queues.get(T0)
        while queue is not None and accumulator.head(queue) is not None:
            batch = accumulator.pop_head(queue)
            found += values_of(batch)
            batch.delivered()
            accumulator.release(batch)
    for thread in range(threads):
        of_thread = [each for each in found if each // count == thread]
        assert of_thread == list(range(thread * count, (thread + 1) * count))
    assert accumulator.memory.free == accumulator.memory.size
    assert not accumulator.unfinished()
