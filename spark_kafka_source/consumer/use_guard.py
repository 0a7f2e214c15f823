"""A guard for objects that one thread, or one task, at a time may use."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_kafka_source.errors import LocalError


class UseGuard:
    """The user of a consumer now. Two at once would lose records or read them twice."""

    def __init__(self, kind: str, present: Callable[[], object]) -> None:
        """`present` returns the present user, which is a thread or a task."""
        self._kind, self._present = kind, present
        self._user: object = None
        self._taking_over = threading.Lock()
        self._depth = 0
        self.is_closed = False

    @contextmanager
    def used_here(self) -> Iterator[None]:
        """Use the consumer here. Raises `LocalError` if another user does, or if it is closed."""
        me = self._present()
        with self._taking_over:
            before = self._user
            if before not in (None, me):
                found = f"This consumer is in use by another {self._kind}"
                raise LocalError(f"{found}; only wakeup() may be")
            if self.is_closed:
                raise LocalError("This consumer is closed")
            self._user = me
            self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._user = before

    def refuse_within_another(self, call: str) -> None:
        """Raise `LocalError` if a callback makes this call, while another call goes on."""
        if self._depth > 1:
            raise LocalError(
                f"{call} was called in a callback of this consumer, such as a rebalance listener, "
                "while another call goes on: poll after that"
            )
