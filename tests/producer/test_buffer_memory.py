"""`buffer.memory`: the order of waits, timeouts by name, and the end of all waits."""

import threading
from collections.abc import Callable

import pytest

from spark_kafka_source.errors import ClosedError
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import BufferFullError
from spark_kafka_source.producer.buffer_memory import BufferMemory
from tests.consumer.consumers import eventually
from tests.producer.writing import HOUR_MS


def memory_of(size: int, exhausted: Callable[[], object] = lambda: None) -> BufferMemory:
    return BufferMemory(size, exhausted)


def in_time() -> Deadline:
    return Deadline.after_ms(HOUR_MS)


class Taker(threading.Thread):
    """A thread that takes memory, and notes when it got the memory."""

    def __init__(self, memory: BufferMemory, count: int, order: list[int]) -> None:
        super().__init__()
        self.memory, self.count, self.order = memory, count, order
        self.error: Exception | None = None
        before = len(memory._waiting)
        self.start()
        eventually(lambda: len(memory._waiting) > before or not self.is_alive())

    def run(self) -> None:
        try:
            self.memory.take(self.count, in_time())
            self.order.append(self.count)
        except Exception as error:
            self.error = error


def test_what_is_free_is_taken_without_a_wait() -> None:
    memory = memory_of(10)
    memory.take(4, Deadline.after_ms(0))
    memory.take(6, Deadline.after_ms(0))
    assert memory.free == 0
    assert memory.waited_ms.count == 0


def test_a_full_buffer_names_both_options_and_what_it_holds() -> None:
    memory = memory_of(10)
    memory.take(7, in_time())
    with pytest.raises(BufferFullError) as caught:
        memory.take(4, Deadline.after_ms(0))
    text = str(caught.value)
    assert "no room for 4 more bytes within 0 ms ('kafka.max.block.ms')" in text
    assert "7 of the 10 of 'kafka.buffer.memory'" in text
    assert memory.free == 3
    assert not memory.is_exhausted
    assert memory.waited_ms.count == 1


def test_waiting_calls_get_memory_in_order_and_a_small_one_does_not_overtake() -> None:
    memory = memory_of(10)
    memory.take(10, in_time())
    order: list[int] = []
    takers = [Taker(memory, count, order) for count in (8, 1, 3)]
    memory.give_back(7)
    assert not order
    assert memory.is_exhausted
    memory.give_back(1)
    eventually(lambda: order == [8])
    memory.give_back(4)
    for each in takers:
        each.join()
    assert order[0] == 8
    assert sorted(order[1:]) == [1, 3]
    assert memory.free == 0


def test_one_that_comes_later_waits_behind_others_although_there_is_room_for_it() -> None:
    memory = memory_of(10)
    memory.take(5, in_time())
    order: list[int] = []
    taker = Taker(memory, 8, order)
    with pytest.raises(BufferFullError):
        memory.take(1, Deadline.after_ms(0))
    memory.give_back(5)
    taker.join()
    memory.take(1, Deadline.after_ms(0))


def test_whoever_gives_up_leaves_its_turn_to_the_next() -> None:
    memory = memory_of(10)
    memory.take(6, in_time())
    order: list[int] = []
    with_patience: list[Taker] = []

    class Impatient(threading.Thread):
        def run(self) -> None:
            with pytest.raises(BufferFullError):
                memory.take(8, Deadline.after_ms(20))

    impatient = Impatient()
    impatient.start()
    eventually(lambda: memory.is_exhausted or not impatient.is_alive())
    with_patience.append(Taker(memory, 4, order))
    impatient.join()
    with_patience[0].join()
    assert order == [4]


def test_that_somebody_waits_is_told_once_and_not_where_there_is_room() -> None:
    told: list[bool] = []
    memory = memory_of(10, lambda: told.append(True))
    memory.take(10, in_time())
    assert not told
    with pytest.raises(BufferFullError):
        memory.take(1, Deadline.after_ms(0))
    assert told == [True]


def test_the_end_of_the_buffer_ends_all_waits_with_its_reason() -> None:
    memory = memory_of(10)
    memory.take(10, in_time())
    takers = [Taker(memory, 1, []) for _ in range(3)]
    memory.close(ClosedError("it is enough"))
    memory.close(ClosedError("this comes too late"))
    for each in takers:
        each.join()
        assert isinstance(each.error, ClosedError)
        assert str(each.error) == "it is enough"
    memory.give_back(10)
    with pytest.raises(ClosedError, match="it is enough"):
        memory.take(1, in_time())
    assert memory.free == 10
