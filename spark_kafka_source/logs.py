"""The loggers of this package. Say nothing beneath a handler that is at work.

A program's handler may send its lines to Kafka. Then a line that is logged within that `send` would
be sent, too, and so on: each deeper than the line before, each with a wait of its own. A line from
beneath a handler is recognized by the stack, since neither the thread nor the client tells it from
others: the same thread may send records with the same client otherwise.
"""

import logging
import sys
from types import FrameType

_HANDLE = logging.Handler.handle.__code__


def logger_of(module: str) -> logging.Logger:
    """Return a module's logger. Its lines reach no handler while one works in this thread."""
    logger = logging.getLogger(module)
    logger.addFilter(_is_no_echo)
    return logger


def _is_no_echo(_: logging.LogRecord) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _HANDLE:
        frame = frame.f_back
    return frame is None
