"""Python in a process of its own, and a check for processes that should have ended."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

TIMEOUT_SECONDS = 60
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@contextmanager
def running_python(
    *words: str, timeout_seconds: float, **environment: str
) -> Iterator["subprocess.Popen[str]"]:
    """Run Python. A timeout kills it, which also ends the reads of its output."""
    with subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | environment,
        cwd=Path(__file__).parents[2],
    ) as process:
        too_long = threading.Timer(timeout_seconds, process.kill)
        too_long.start()
        try:
            yield process
        finally:
            too_long.cancel()
            process.kill()


def still_there(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return processes that still run after a minute. An unreaped ended process does not count."""
    _, left = psutil.wait_procs(processes, timeout=TIMEOUT_SECONDS)
    return [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
