"""A check for processes that should have ended."""

from collections.abc import Sequence

import psutil

TIMEOUT_SECONDS = 60


def still_there(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return processes that still run after a minute. An unreaped ended process does not count."""
    _, left = psutil.wait_procs(processes, timeout=TIMEOUT_SECONDS)
    return [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
