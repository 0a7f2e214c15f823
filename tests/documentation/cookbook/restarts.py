"""Restarts of a query as after a driver that died before it noted down its last micro-batch."""

from pathlib import Path


def forget_last_commit(checkpoint: Path) -> int:
    """Make the next start run the last micro-batch again. Return its number."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / f"{last}").unlink()
    (commits / f".{last}.crc").unlink()
    return last
