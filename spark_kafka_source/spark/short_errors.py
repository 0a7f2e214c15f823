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

logger = logger_of(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class ShortErrors:
    """Raise the `KafkaError`s of a block without their frames, which are logged at DEBUG.

    Causes are left out as well: the error's text says them. A cause from the user's own code, such
    as a token provider, stays. A `ProtocolError` keeps all: its frames say which bytes are wrong.
    """

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        """Raise the shortened error in place of the block's `KafkaError`."""
        if not isinstance(error, KafkaError) or isinstance(error, ProtocolError):
            return
        raised = self.shortened(error)
        # `format_tb` reads and parses source files, so only where its text is wanted.
        if logger.isEnabledFor(logging.DEBUG):
            # The first text might have values that `shortened` hides.
            logger.debug("%s, raised at\n%s", raised, "".join(traceback.format_tb(frames)))
        raise raised.with_traceback(None) from _foreign_cause(error)

    def shortened(self, error: KafkaError) -> KafkaError:
        """Return the error to raise."""
        return error


def short_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function within `ShortErrors`."""

    @wraps(function)
    def shortened(*args: P.args, **kwargs: P.kwargs) -> R:
        with ShortErrors():
            return function(*args, **kwargs)

    return shortened


def _foreign_cause(error: BaseException) -> BaseException | None:
    cause = error.__cause__
    while isinstance(cause, KafkaError | OSError):
        cause = cause.__cause__
    return cause
