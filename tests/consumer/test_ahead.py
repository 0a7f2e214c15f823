"""Going ahead: order, the bound, errors in their turn, and an end that ends the thread."""

import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.consumer import Ahead


def nothing() -> None:
    """There is nothing to wake."""


def ahead_of(
    source: Iterator[int], *, max_size: int = 10, interrupt: Callable[[], None] = nothing
) -> Ahead[int]:
    return Ahead(source, size=lambda item: item, max_size=max_size, interrupt=interrupt)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "fetch-ahead"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert threads() == []


@given(st.lists(st.integers(0, 20)), st.integers(0, 30), st.integers(0, 30))
def test_all_items_come_in_order_or_as_many_as_are_taken(
    items: list[int], max_size: int, taken: int
) -> None:
    ahead = ahead_of(iter(items), max_size=max_size)
    found = [item for item, _ in zip(ahead, range(taken), strict=False)]
    ahead.close()
    assert found == items[:taken]
    assert threads() == []


@given(st.lists(st.integers(0, 20)), st.integers(0, 30))
def test_no_more_is_held_than_the_bound_or_one_item(items: list[int], max_size: int) -> None:
    """Looked at whenever the source is asked for one more."""
    taken = 0
    held: list[list[int]] = []

    def source() -> Iterator[int]:
        for index, item in enumerate(items):
            # The consumer counts an item a moment after it took it.
            held.append(items[taken + 1 : index])
            yield item

    ahead = ahead_of(source(), max_size=max_size)
    for item in ahead:
        assert item == items[taken]
        taken += 1
    ahead.close()
    assert all(sum(each) <= max_size or len(each) == 1 for each in held)


def test_the_source_waits_until_there_is_room() -> None:
    asked = threading.Semaphore(0)
    given_items = []

    def source() -> Iterator[int]:
        for item in (6, 4, 1, 20, 20):
            given_items.append(item)
            asked.release()
            yield item

    ahead = ahead_of(source(), max_size=10)
    for _ in range(3):
        assert asked.acquire(timeout=20)
    # 6 and 4 fill it; 1 was made, and waits: the source cannot have been asked for 20.
    assert given_items == [6, 4, 1]
    assert list(ahead) == [6, 4, 1, 20, 20]
    ahead.close()


def test_an_error_comes_after_the_items_before_it() -> None:
    def source() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("the third")

    ahead = ahead_of(source())
    items = iter(ahead)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(items)
    ahead.close()


def test_close_wakes_a_source_that_waits_and_joins_its_thread() -> None:
    waiting, woken = threading.Event(), threading.Event()

    def source() -> Iterator[int]:
        yield 1
        waiting.set()
        assert woken.wait(20)
        raise ConnectionAbortedError("woken")

    ahead = ahead_of(source(), interrupt=woken.set)
    assert next(iter(ahead)) == 1
    assert waiting.wait(20)
    ahead.close()


def test_close_wakes_a_source_that_has_no_room() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 7

    ahead = ahead_of(endless())
    assert next(iter(ahead)) == 7
    ahead.close()


def test_close_in_another_thread_ends_the_consumer() -> None:
    woken = threading.Event()

    def source() -> Iterator[int]:
        assert woken.wait(20)
        yield from ()

    ahead = ahead_of(source(), interrupt=woken.set)
    closing = threading.Thread(target=ahead.close)
    closing.start()
    assert list(ahead) == []
    closing.join(20)
    assert not closing.is_alive()


def test_a_source_that_is_done_is_not_interrupted() -> None:
    """Its client is put back for the next task."""
    interrupted = threading.Event()
    ahead = ahead_of(iter([1, 2]), interrupt=interrupted.set)
    assert list(ahead) == [1, 2]
    ahead.close()
    ahead.close()
    assert not interrupted.is_set()
