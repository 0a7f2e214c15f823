"""Stops by Ctrl-C and SIGTERM. They end a command while it waits, not in the middle of its work."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_FROM_SIGNAL = 128


class Stopped(KeyboardInterrupt):
    """A stop by the user or the system. `status` is the exit code that shells expect."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.status = _FROM_SIGNAL + signal_number


class StopSignals:
    """A block in which the first signal raises `Stopped` only where that is `allowed`.

    The second signal raises it anywhere. In other threads than the main thread, which gets the
    signals, the block does nothing.
    """

    def __init__(self) -> None:
        self._is_allowed = False
        self._came: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Allow a stop within the block. Stop at once if a signal has come before."""
        # Set this before the check: a signal between check and assignment would be missed.
        self._is_allowed = True
        try:
            if self._came is not None:
                raise Stopped(self._came)
            yield
        finally:
            self._is_allowed = False

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        is_first, self._came = self._came is None, number
        if self._is_allowed or not is_first:
            self._is_allowed = False
            raise Stopped(number)
