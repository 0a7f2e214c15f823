"""Forks of a test's process: what a function returns or raises in a child."""

import os
import pickle
import select
import signal
from collections.abc import Callable
from typing import Any

import pytest

PATIENCE_SECONDS = 60.0

# Python warns of a fork of a process with threads, from 3.12 on. That is what these tests are for.
forking = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def in_child(function: Callable[[], Any]) -> Any:
    """Call a function in a fork of this process. Return its result, or raise its error.

    The child ends without the clean-up of the interpreter. A child that hangs is killed, and fails.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(_outcome(function)))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        is_done = select.select([pipe], [], [], PATIENCE_SECONDS)[0]
        if not is_done:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert is_done, "the child hangs"
        found, error = pickle.loads(pipe.read())
    if error is not None:
        raise error
    return found


def _outcome(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return function(), None
    except Exception as error:
        return None, error
    except BaseException as error:
        return None, AssertionError(repr(error))


def raised_in_child(function: Callable[[], Any]) -> Exception | None:
    """Return the error that a function raises in a fork of this process, or None."""

    def error() -> Exception | None:
        return _outcome(function)[1]

    found: Exception | None = in_child(error)
    return found
