"""A process with its own SparkSession, in its own session of the operating system."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

import psutil

TIMEOUT_SECONDS = 180
"""The longest time that a driver may take to get ready, or to end. A shared machine is slow."""


class SparkChild:
    """A process that runs a module, which gets ready and then waits for a line with its orders.

    `environment` is added to this process's own. `close` ends the process, its JVM and its Python
    workers.
    """

    def __init__(self, module: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def run(self, orders: str, timeout_seconds: float = TIMEOUT_SECONDS) -> int:
        """Give the orders, and wait. Return the exit status, or minus the signal that ended it."""
        try:
            self._process.communicate(orders.encode() + b"\n", timeout_seconds)
        except subprocess.TimeoutExpired as error:
            shown = [each.as_dict(["pid", "status", "cmdline"]) for each in self.there()]
            raise AssertionError(f"not ended within {timeout_seconds} s: {shown}") from error
        return self._process.returncode

    def begin(self, orders: str) -> None:
        """Give the orders, and do not wait. A module may run until `end` closes its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(orders.encode() + b"\n")
        self._process.stdin.flush()

    def end(self, timeout_seconds: float = TIMEOUT_SECONDS) -> int:
        """Close standard input. Return the exit status, or minus the signal that ended it."""
        self._process.communicate(timeout=timeout_seconds)
        return self._process.returncode

    @property
    def pid(self) -> int:
        """The process's id, which is also the group of the process and its JVM."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended. Its JVM and its Python workers may still run."""
        return self._process.poll() is not None

    def there(self) -> list[psutil.Process]:
        """Return the processes of its session that still run, Python workers included."""
        return [each for each in psutil.process_iter() if self._has(each)]

    def close(self) -> None:
        """End all processes that still run."""
        for process in self.there():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def _has(self, process: psutil.Process) -> bool:
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            ended = process.status() == psutil.STATUS_ZOMBIE
            return os.getsid(process.pid) == self._process.pid and not ended
        return False
