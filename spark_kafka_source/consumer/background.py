"""Questions in threads of their own, for what can only block: a registry, a producer's end."""

import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, TypeVar, cast

from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.net.conversation import InterruptedConversationError
from spark_kafka_source.net.threads import start

T = TypeVar("T")

# Further questions wait for these. Each may wait for a silent server.
_MOST_AT_ONCE = 8
_LAST_WORDS_MS = 1_000


class Answer(Generic[T]):
    """The answer to one question. Once `is_done`, `result` returns it or raises the error."""

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._answer: T | None = None
        self._error: Exception | None = None
        self.is_done = False

    def result(self) -> T:
        """Return the answer; call it once `is_done`. Raises what the question raised."""
        if self._error is not None:
            raise self._error
        return cast(T, self._answer)

    def find(self) -> None:
        """Ask, and wait for the answer."""
        try:
            self._answer = self._question()
        except Exception as error:
            self._error = error
        except BaseException as error:
            self._error = InterruptedConversationError(f"interrupted by {error!r}")
            raise
        finally:
            self.is_done = True


class Background:
    """Questions beside the thread of a consumer. Each answer wakes `done`."""

    def __init__(self, done: Wakeup) -> None:
        self._done = done
        self._lock = threading.Lock()
        self._waiting: deque[Answer[Any]] = deque()
        self._busy: set[threading.Thread] = set()

    def ask(self, question: Callable[[], T]) -> Answer[T]:
        """Begin to ask. Another thread calls the question."""
        answer = Answer(question)
        with self._lock:
            self._waiting.append(answer)
            if len(self._busy) >= _MOST_AT_ONCE:
                return answer
            run = copy_context().run  # So errors in the thread name settings as the user does.
            thread = threading.Thread(target=run, args=[self._run], name="lookup", daemon=True)
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
                answer = self._waiting.popleft()
            answer.find()
            self._done.wake()
