"""The loggers of this package. Say nothing beneath a handler that is at work.

A program's handler may send its lines to Kafka. Then a line that is logged within that `send` would
be sent, too, and so on: each deeper than the line before, each with a wait of its own. A line from
beneath a handler is recognized by the stack, since neither the thread nor the client tells it from
others: the same thread may send records with the same client otherwise.

No background thread waits for a lock of `logging`. A thread that closes a producer may hold such a
lock, as `logging.config.dictConfig` and `logging.shutdown` do while they close a handler, and waits
for the producer's thread. So another thread hands the lines of background threads to the handlers.
"""

import logging
import os
import sys
import traceback
import weakref
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread
from types import FrameType

_HANDLE = logging.Handler.handle.__code__
_MOST_LINES = 1_000
_LAST_LINES_SECONDS = 0.25


class BackgroundThread(Thread):
    """A thread of this package that others may wait for: it hands its log lines on."""


class _Writer:
    """The thread that has the lines of background threads written."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin without a line and without a thread: a fork's child has not its parent's."""
        # Its `put` needs no lock of Python's: a line may come from a `__del__` within another one.
        self._jobs: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._has_thread = Lock()

    def take(self, record: logging.LogRecord) -> None:
        """Have a line written, in its own context. Never wait: lines too many are left out."""
        room = _MOST_LINES - self._jobs.qsize()
        if room < 0:
            return
        if room == 0:
            record.msg, record.args = "Log lines are left out from here on: a handler is slow", ()
        self._jobs.put(partial(copy_context().run, _handle, record))
        if self._has_thread.acquire(blocking=False):
            try:
                Thread(target=self._run, name="log lines", daemon=True).start()
            except RuntimeError:  # The interpreter ends, or has too many threads for a moment.
                self._has_thread.release()

    def flush(self) -> None:
        """Wait for the lines so far, but no longer than a moment: a lock may be the caller's."""
        if self._has_thread.locked() and self._jobs.qsize() < 2 * _MOST_LINES:
            done = Event()
            self._jobs.put(done.set)
            done.wait(_LAST_LINES_SECONDS)

    def end(self) -> None:
        """Write what is left at the interpreter's end. It may start no thread any more."""
        self.flush()
        for _ in range(0 if self._has_thread.locked() else self._jobs.qsize()):
            self._write_next()

    def _run(self) -> None:
        while True:
            self._write_next()

    def _write_next(self) -> None:
        try:
            self._jobs.get()()  # No name keeps the line, which may refer to a client.
        except BaseException:  # A program's handler may raise anything. Other lines follow.
            traceback.print_exc()


_writer = _Writer()


def logger_of(module: str) -> logging.Logger:
    """Return a module's logger. Its lines reach no handler while one works in this thread.

    Lines of a `BackgroundThread` reach the handlers a moment later, from another thread.
    """
    logger = logging.getLogger(module)
    vars(logger)["isEnabledFor"] = partial(_is_enabled, logger)
    logger.addFilter(_is_for_this_thread)
    return logger


def flush() -> None:
    """Wait until the lines of background threads are written, for a quarter of a second at most."""
    _writer.flush()


def _is_enabled(logger: logging.Logger, level: int) -> bool:
    """Whether lines of this level are wanted, without the lock of `Logger.isEnabledFor`."""
    least = max(logger.getEffectiveLevel(), logger.manager.disable + 1)
    return level >= least and not logger.disabled


def _is_for_this_thread(record: logging.LogRecord) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _HANDLE:
        frame = frame.f_back
    if frame is None and isinstance(current_thread(), BackgroundThread):
        _writer.take(record)
        return False
    return frame is None


def _handle(record: logging.LogRecord) -> None:
    logging.getLogger(record.name).handle(record)


os.register_at_fork(after_in_child=_writer.begin)
# Finalizers run in reverse order: this one follows those of the clients that nobody closed.
weakref.finalize(_Writer, _writer.end)
