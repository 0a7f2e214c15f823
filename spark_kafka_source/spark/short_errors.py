"""Errors on their way to Spark, without the frames that led to them.

Spark shows a Python source's error as the text of its traceback, within its own texts. The sentence
that says what is wrong is the last line of the traceback, and so is hard to find under many frames
and causes.
"""

import logging
import traceback
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

from spark_kafka_source.errors import KafkaError, ProtocolError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.protocol import OtherServerError

logger = logger_of(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class ShortErrors:
    """Leave one frame in the `KafkaError`s of a block. All frames are logged at DEBUG.

    Causes are left out as well: the error's text says them. A cause from the user's own code, such
    as a token provider, stays. A `ProtocolError` keeps all: its frames say which bytes are wrong;
    not so an `OtherServerError`.
    """

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        """Shorten the block's `KafkaError`."""
        if not isinstance(error, KafkaError):
            return
        if isinstance(error, ProtocolError) and not isinstance(error, OtherServerError):
            return
        self.hide(error)
        # `format_tb` reads and parses source files, so only where its text is wanted.
        if logger.isEnabledFor(logging.DEBUG):
            # The first text might have values that `hide` hides.
            logger.debug("%s, raised at\n%s", error, "".join(traceback.format_tb(frames)))
        error.__traceback__, error.__cause__ = _one_frame(frames), _foreign_cause(error)

    def hide(self, error: KafkaError) -> None:
        """Take out of the error what must not be shown."""


def short_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function within `ShortErrors`."""

    @wraps(function)
    def shortened(*args: P.args, **kwargs: P.kwargs) -> R:
        with ShortErrors():
            return function(*args, **kwargs)

    return shortened


def _one_frame(frames: TracebackType | None) -> TracebackType | None:
    """Return the innermost frame that ended where the error passed through it.

    Spark shows the line where a frame ended. With `finally` or `with` that is a line of a clean-up.
    """
    found = None
    while frames is not None:
        if frames.tb_lineno == frames.tb_frame.f_lineno:
            found = frames
        frames = frames.tb_next
    return found and TracebackType(None, found.tb_frame, found.tb_lasti, found.tb_lineno)


def _foreign_cause(error: BaseException) -> BaseException | None:
    cause = error.__cause__
    while isinstance(cause, KafkaError | OSError):
        cause = cause.__cause__
    return cause
