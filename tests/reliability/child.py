"""A process with a SparkSession of its own, in a session (as the system has them) of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

import psutil

TIMEOUT_SECONDS = 180
"""How long a driver may take to get ready, or to end; a machine that others share is slow."""


class SparkChild:
    """Runs a module, which gets ready and then waits for a line that says what it is to do.

    `environment` is added to this process's own. It is gone after `close`, with its JVM and its
    Python workers.
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
        """Its exit status, or minus the signal that ended it."""
        try:
            self._process.communicate(orders.encode() + b"\n", timeout_seconds)
        except subprocess.TimeoutExpired as error:
            shown = [each.as_dict(["pid", "status", "cmdline"]) for each in self.there()]
            raise AssertionError(f"not ended within {timeout_seconds} s: {shown}") from error
        return self._process.returncode

    def begin(self, orders: str) -> None:
        """Has it begin; one that goes on until its standard input ends does so until `end`."""
        assert self._process.stdin is not None
        self._process.stdin.write(orders.encode() + b"\n")
        self._process.stdin.flush()

    def end(self, timeout_seconds: float = TIMEOUT_SECONDS) -> int:
        """Ends its standard input; its exit status, or minus the signal that ended it."""
        self._process.communicate(timeout=timeout_seconds)
        return self._process.returncode

    @property
    def pid(self) -> int:
        """Also the number of the group that it and its JVM are in."""
        return self._process.pid

    def there(self) -> list[psutil.Process]:
        """Those of its processes that still run: Python workers are in its session, too."""
        return [each for each in psutil.process_iter() if self._has(each)]

    def close(self) -> None:
        """Ends what still runs."""
        for process in self.there():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def _has(self, process: psutil.Process) -> bool:
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            ended = process.status() == psutil.STATUS_ZOMBIE
            return os.getsid(process.pid) == self._process.pid and not ended
        return False
