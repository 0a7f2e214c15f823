"""Child processes that end with this process, however it ends."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

SHELL = "/bin/sh"


def _script(name: str) -> list[str]:
    text = files("spark_kafka_source.testing").joinpath(name).read_text()
    return [SHELL, "-c", text, name]


class Child:
    """A command in its own session: a Ctrl-C in the terminal does not reach it.

    `close` kills it. It is also killed when this process ends without a `close`, even by SIGKILL:
    its supervisor waits at a pipe that the kernel then closes. (A process forked from this one,
    without an exec, holds that pipe open, too.) Output and errors are appended to files, which may
    be the same.
    """

    def __init__(self, command: Sequence[str], *, output: Path, errors: Path) -> None:
        self._supervisor = subprocess.Popen(
            [*_script("supervise.sh"), str(output), str(errors), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._supervisor.stdout  # noqa: S101 (for mypy: it is a pipe)
        with self._supervisor.stdout as answer:
            self.pid = int(answer.readline())

    @property
    def running(self) -> bool:
        """Whether the command has not ended yet. A paused one has not."""
        return self._supervisor.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send the command a signal. Do nothing if it has ended."""
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout_ms: int) -> int | None:
        """Return the exit status (128 + its number for a signal), or None if it still runs."""
        try:
            status = self._supervisor.wait(timeout_ms / 1000)
        except subprocess.TimeoutExpired:
            return None
        self.close()
        return status

    def close(self) -> None:
        """Kill the command if it still runs. It has ended when this returns."""
        _let_go(self._supervisor)


class RemovedDirectory:
    """A directory that is removed by `close`, or when this process ends without a `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._remover = subprocess.Popen(
            [*_script("remove.sh"), str(path)], stdin=subprocess.PIPE, start_new_session=True
        )

    def close(self) -> None:
        """Remove the directory with its content. It is gone when this returns."""
        _let_go(self._remover, b"now\n")


def _let_go(process: subprocess.Popen[bytes], word: bytes = b"") -> None:
    # The pipe is broken if the process has ended already.
    with suppress(BrokenPipeError):
        process.communicate(word)
