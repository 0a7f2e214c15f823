"""Questions in threads of their own, for what can only block: a registry, a producer's end."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.net.conversation import InterruptedConversationError
from spark_kafka_source.net.threads import start
from spark_kafka_source.spelling import daemon

T = TypeVar("T")

# Further questions wait for these. Each may wait for a silent server.
_MOST_AT_ONCE = 8
_LAST_WORDS_MS = 1_000


class Background:
    """Questions beside the thread of a consumer. Each answer wakes `done`.

    Once a future is `done()`, its `result()` returns the answer or raises the question's error.
    """

    def __init__(self, done: Wakeup) -> None:
        self._done = done
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._busy: set[threading.Thread] = set()

    def ask(self, question: Callable[[], T]) -> "Future[T]":
        """Begin to ask. Another thread calls the question."""
        answer: Future[T] = Future()
        with self._lock:
            self._waiting.append((answer, question))
            if len(self._busy) >= _MOST_AT_ONCE:
                return answer
            thread = daemon(self._run, "lookup")
            self._busy.add(thread)
        try:
            is_started = start(thread)
        except RuntimeError:  # The process can have no more threads for a moment.
            is_started = False
        if not is_started:
            with self._lock:
                self._busy.discard(thread)
            self._find_waiting()
        return answer

    def close(self) -> None:
        """Drop the questions that were not asked yet, and wait a second for the threads."""
        with self._lock:
            self._waiting.clear()
            threads = list(self._busy)
        deadline = Deadline.after_ms(_LAST_WORDS_MS)
        for thread in threads:
            thread.join(deadline.remaining_seconds())

    def _run(self) -> None:
        self._find_waiting()
        with self._lock:
            self._busy.discard(threading.current_thread())
        # One that came since the last look has begun a thread of its own, or finds none left here.
        self._find_waiting()

    def _find_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    return
                answer, question = self._waiting.popleft()
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)
            except BaseException as error:
                answer.set_exception(InterruptedConversationError(f"interrupted by {error!r}"))
                raise
            self._done.wake()
