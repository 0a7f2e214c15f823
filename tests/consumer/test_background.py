"""Questions in threads of their own: their order, their end, and a machine without threads."""

import threading
from collections.abc import Callable, Iterator

import pytest

from spark_kafka_source.consumer import background as background_module
from spark_kafka_source.consumer.background import _MOST_AT_ONCE, Background
from spark_kafka_source.errors import LocalError
from spark_kafka_source.net import Deadline, Wakeup, readable
from tests.consumer.consumers import eventually

PATIENCE_SECONDS = 60


class Server:
    """A server that answers once the test says so. It notes who asked, in order."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.may_answer = threading.Event()

    def question(self, number: int) -> Callable[[], int]:
        def ask() -> int:
            self.asked.append(number)
            assert self.may_answer.wait(PATIENCE_SECONDS)
            return number

        return ask


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.may_answer.set()


@pytest.fixture
def background() -> Iterator[Background]:
    background = Background(Wakeup())
    yield background
    background.close()


def test_an_answer_wakes_who_waits(server: Server) -> None:
    background = Background(done := Wakeup())
    answer = background.ask(server.question(7))
    assert not readable([done], Deadline.after_ms(0))
    assert not answer.done()
    server.may_answer.set()
    assert readable([done], Deadline.after_ms(PATIENCE_SECONDS * 1000))
    assert (answer.done(), answer.result()) == (True, 7)
    background.close()


def test_an_error_is_raised_where_the_answer_is_taken(background: Background) -> None:
    def fail() -> int:
        raise LocalError("a fault")

    answer = background.ask(fail)
    eventually(answer.done)
    with pytest.raises(LocalError, match="a fault"):
        answer.result()


def test_more_questions_than_threads_wait_for_their_turn_in_order(
    background: Background, server: Server
) -> None:
    asked = [background.ask(server.question(each)) for each in range(20)]
    eventually(lambda: len(server.asked) == _MOST_AT_ONCE)
    assert sorted(server.asked) == list(range(_MOST_AT_ONCE))
    assert len(background._busy) == _MOST_AT_ONCE
    server.may_answer.set()
    eventually(lambda: all(each.done() for each in asked))
    assert [each.result() for each in asked] == list(range(20))


def test_one_thread_asks_one_question_after_the_other(
    background: Background, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "_MOST_AT_ONCE", 1)
    asked = [background.ask(server.question(each)) for each in range(20)]
    server.may_answer.set()
    eventually(lambda: all(each.done() for each in asked))
    assert server.asked == list(range(20))


def test_threads_end_with_the_questions(background: Background, server: Server) -> None:
    server.may_answer.set()
    for number in range(3):
        answer = background.ask(server.question(number))
        eventually(answer.done)
        eventually(lambda: not background._busy)
    assert server.asked == [0, 1, 2]


# -- a process that can start no more threads ------------------------------------------------------


def threads_for(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so many more threads start. After that, none does."""
    left = iter(range(count))

    def start(thread: threading.Thread) -> bool:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        thread.start()
        return True

    monkeypatch.setattr(background_module, "start", start)


def test_the_calling_thread_asks_where_no_other_can_start(
    background: Background, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads_for(0, monkeypatch)
    server.may_answer.set()
    for number in range(3):
        answer = background.ask(server.question(number))
        assert (answer.done(), answer.result()) == (True, number)
    assert not background._busy


def test_a_machine_without_room_for_more_threads_still_answers(
    background: Background, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first questions have threads. When these end, no other thread starts any more."""
    threads_for(_MOST_AT_ONCE, monkeypatch)
    asked = [background.ask(server.question(each)) for each in range(20)]
    eventually(lambda: len(server.asked) == _MOST_AT_ONCE)
    server.may_answer.set()
    eventually(lambda: all(each.done() for each in asked))
    assert [each.result() for each in asked] == list(range(20))
    eventually(lambda: not background._busy)
    assert background.ask(server.question(20)).result() == 20


def test_an_interpreter_that_ends_still_answers(
    background: Background, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "start", lambda _: False)
    server.may_answer.set()
    assert background.ask(server.question(7)).result() == 7


# -- closing ---------------------------------------------------------------------------------------


def test_close_waits_for_sent_questions_and_drops_the_others(server: Server) -> None:
    background = Background(Wakeup())
    asked = [background.ask(server.question(each)) for each in range(_MOST_AT_ONCE + 5)]
    eventually(lambda: len(server.asked) == _MOST_AT_ONCE)
    threads = list(background._busy)
    closing = threading.Thread(target=background.close, daemon=True)
    closing.start()
    eventually(lambda: not background._waiting)
    server.may_answer.set()
    closing.join(PATIENCE_SECONDS)
    for each in threads:
        each.join(PATIENCE_SECONDS)
    assert [each.done() for each in asked] == [True] * _MOST_AT_ONCE + [False] * 5
    assert sorted(server.asked) == list(range(_MOST_AT_ONCE))


def test_close_does_not_wait_for_a_silent_server_for_long(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "_LAST_WORDS_MS", 1)
    background = Background(Wakeup())
    answer = background.ask(server.question(7))
    background.close()
    assert not answer.done()
