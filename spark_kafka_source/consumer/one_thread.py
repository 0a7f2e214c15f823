"""A guard for objects that one thread at a time may use."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from spark_kafka_source.errors import LocalError


class OneThread:
    """The thread that uses a consumer now. Two at once would lose records or read them twice."""

    def __init__(self) -> None:
        self._user: int | None = None
        self._taking_over = threading.Lock()
        self._depth = 0
        self.is_closed = False

    @contextmanager
    def used_here(self) -> Iterator[None]:
        """Use the consumer in this thread. Raises `LocalError` if another uses it, or none may."""
        me = threading.get_ident()
        with self._taking_over:
            before = self._user
            if before not in (None, me):
                raise LocalError("This consumer is in use by another thread; only wakeup() may be")
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
        """Raise `LocalError` if this call is one of a callback that another call has called."""
        if self._depth > 1:
            raise LocalError(
                f"{call} was called in a callback of this consumer, such as a rebalance listener, "
                "while another call goes on: poll after that"
            )
