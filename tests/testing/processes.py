"""Which processes outlive what should have been their end."""

from collections.abc import Sequence

import psutil

TIMEOUT_SECONDS = 60


def still_there(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after a minute; one that ended and is yet to be reaped does not."""
    _, left = psutil.wait_procs(processes, timeout=TIMEOUT_SECONDS)
    return [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
