"""Lookups: questions to brokers in threads of their own, so that a client need not wait."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

from spark_kafka_source.client.client import KafkaClient
from spark_kafka_source.net import Deadline, Wakeup, readable
from spark_kafka_source.net.threads import start

A = TypeVar("A")
T = TypeVar("T")

LOOKUP_MS = 10_000
"""How long a lookup goes on. Its error is then logged, and the question is asked anew."""

# Further lookups wait for these. Each lookup may wait for a silent broker.
_MOST_AT_ONCE = 8
# The client keeps so many siblings for the next lookups. Each may have a connection to each broker,
# and more lookups at once are rare: a broker is silent then.
_MOST_IDLE = 2
_LAST_WORDS_MS = 1_000


class Lookup(Generic[T]):
    """One question. Once `is_done`, `result` returns the answer or raises the error."""

    def __init__(self, question: Callable[[KafkaClient], T]) -> None:
        self._question = question
        self._answer: T | None = None
        self._error: Exception | None = None
        self.is_done = False

    def result(self) -> T:
        """Return the answer; call it once `is_done`. Raises what the question raised."""
        if self._error is not None:
            raise self._error
        return cast(T, self._answer)

    def put_to(self, client: KafkaClient) -> None:
        """Ask, and wait for the answer."""
        try:
            self._answer = self._question(client)
        except Exception as error:
            self._error = error
        self.is_done = True


class AnyLookups(Protocol):
    """The methods of `Lookups` and `LookupsAtOnce`."""

    def ask(self, question: Callable[[KafkaClient], T]) -> Lookup[T]:
        """Ask the question with a client."""
        ...

    def wake(self) -> None:
        """Tell the thread that waits that a part of an answer is here."""
        ...


class LookupsAtOnce:
    """Lookups in the calling thread, with this thread's client."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client

    def ask(self, question: Callable[[KafkaClient], T]) -> Lookup[T]:
        """Ask, and wait for the answer."""
        lookup = Lookup(question)
        lookup.put_to(self._client)
        return lookup

    def wake(self) -> None:
        """Do nothing: the thread that asks does not wait."""


class Lookups:
    """Lookups for the thread of a consumer or a producer. Each answer wakes `done`.

    Each question has a client to itself. The clients share metadata; see `KafkaClient.sibling`.
    """

    def __init__(self, client: KafkaClient, done: Wakeup) -> None:
        self.done = done
        self._client = client
        self._lock = threading.Lock()
        self._waiting: deque[Lookup[Any]] = deque()
        self._idle: list[KafkaClient] = []
        self._busy: dict[threading.Thread, tuple[Lookup[Any], KafkaClient]] = {}
        self._here: list[tuple[Lookup[Any], KafkaClient]] = []
        """Lookups for which no thread could be started. The present thread asks them."""
        self._is_closed = False

    def ask(self, question: Callable[[KafkaClient], T]) -> Lookup[T]:
        """Begin to ask. Another thread calls the question with a client."""
        lookup = Lookup(question)
        with self._lock:
            self._waiting.append(lookup)
            self._begin()
        self._ask_here()
        return lookup

    def wake(self) -> None:
        """Wake the thread that waits for answers."""
        self.done.wake()

    def ask_each(
        self, question: Callable[[KafkaClient, A], T], about: Iterable[A]
    ) -> list[Lookup[T]]:
        """Ask about each item, several at once, and wait until all lookups are done.

        A question must end by itself.
        """
        lookups = [self.ask(partial(_put, question, each)) for each in about]
        while not all(each.is_done for each in lookups):
            readable([self.done], Deadline.after_ms(LOOKUP_MS))
            self.done.clear()
        return lookups

    def give_up(self, lookup: Lookup[Any]) -> None:
        """End a question that no caller waits for any more. Its place is free for others."""
        with self._lock:
            if lookup in self._waiting:
                self._waiting.remove(lookup)
            clients = [client for asked, client in self._busy.values() if asked is lookup]
        for client in clients:
            client.close()

    def close(self) -> None:
        """Give up all questions without an answer, and wait a second for their threads."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
            threads = list(self._busy)
            clients = [*self._idle, *(client for _, client in self._busy.values())]
        for client in clients:
            client.close()
        deadline = Deadline.after_ms(_LAST_WORDS_MS)
        for thread in threads:
            thread.join(deadline.remaining_seconds())

    def _begin(self, *, in_lookup: bool = False) -> None:
        while self._waiting and len(self._busy) < _MOST_AT_ONCE:
            # The connections of the client that was used last are the likeliest to be of use.
            client = self._idle.pop() if self._idle else self._client.sibling()
            lookup = self._waiting[0]
            thread = threading.Thread(
                target=copy_context().run,
                args=[self._run, lookup, client],
                name="lookup",
                daemon=True,
            )
            # `start` raises if the process can have no more threads: the lookup then stays. A
            # lookup's own thread asks instead, since no caller may come to begin it later.
            try:
                is_started = start(thread)
            except RuntimeError:
                if not in_lookup:
                    raise
                is_started = False
            self._waiting.popleft()
            if is_started:
                self._busy[thread] = (lookup, client)
            else:
                self._here.append((lookup, client))

    def _run(self, lookup: Lookup[Any], client: KafkaClient) -> None:
        lookup.put_to(client)
        with self._lock:
            del self._busy[threading.current_thread()]
            if not client.closed:
                self._idle.append(client)
            if not self._is_closed:
                self._begin(in_lookup=True)
            dropped, self._idle = self._idle[:-_MOST_IDLE], self._idle[-_MOST_IDLE:]
        for each in dropped:
            each.close()
        self.done.wake()
        self._ask_here()

    def _ask_here(self) -> None:
        with self._lock:
            mine, self._here = self._here, []
        for lookup, client in mine:
            lookup.put_to(client)
            client.close()
            self.done.wake()


def _put(question: Callable[[KafkaClient, A], T], about: A, client: KafkaClient) -> T:
    return question(client, about)
