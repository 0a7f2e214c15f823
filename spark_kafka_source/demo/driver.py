"""A Spark driver in a process of its own, to be killed with its JVM and its Python workers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spark_kafka_source.errors import LocalError

_ERROR_CHARACTERS = 500
_LOOK_SECONDS = 0.05
_KILL_SECONDS = 60


class Driver:
    """A module that runs in its own session of the operating system, until it is killed or told.

    It reads its standard input: a line tells it to end in order. The end of the input without a
    line tells it that this process has ended. Its temporary files and its output are in a directory
    that the caller removes: a process that is killed leaves them there.
    """

    def __init__(self, module: str, arguments: Sequence[str], directory: Path) -> None:
        self._log = directory / "log"
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**os.environ, "TMPDIR": str(directory)},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def has_ended(self) -> bool:
        """Whether it has ended in order. Raises `LocalError` if it has failed."""
        status = self._process.poll()
        if status:
            text = self._log.read_text(errors="replace").strip()[-_ERROR_CHARACTERS:]
            raise LocalError(f"A driver has ended with status {status}: {text}")
        return status == 0

    def tell(self) -> None:
        """Tell it to end in order."""
        assert self._process.stdin  # noqa: S101 (for mypy: it is a pipe)
        with suppress(BrokenPipeError):  # It has ended; `has_ended` says how.
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def kill(self) -> int:
        """Kill it, its JVM and its Python workers by SIGKILL. Return how many processes it was.

        All have ended when this returns. Raises `LocalError` if one does not end within a minute:
        even SIGKILL has to wait for a device or a network drive.
        """
        end_seconds = time.monotonic() + _KILL_SECONDS
        killed = set[int]()
        if self._process.poll() is None:
            killed.update([self._process.pid, *_processes(self._process.pid)])
            os.killpg(self._process.pid, signal.SIGKILL)
        while left := _processes(self._process.pid):
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            killed.update(left)
            if time.monotonic() > end_seconds:
                raise _will_not_die(left)
            time.sleep(_LOOK_SECONDS)
        self._process.communicate()
        return len(killed)


def _will_not_die(processes: Sequence[int]) -> LocalError:
    numbers = ", ".join(map(str, sorted(processes)))
    found = f"SIGKILL did not end these processes of a driver within {_KILL_SECONDS} seconds"
    return LocalError(f"{found}: {numbers}. They may wait for a device: see `ps -o stat,wchan`")


def _processes(session: int) -> list[int]:
    """Return the processes of a session that still run.

    Spark's Python workers have a process group of their own. Where there is no /proc, they are not
    found: they end by themselves, soon after their JVM.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # It has ended meanwhile.
            state, _, _, its_session, *_ = path.read_text().rpartition(")")[2].split()
            if int(its_session) == session and state != "Z":
                found.append(int(path.parent.name))
    return found
