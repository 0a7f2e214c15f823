"""Files that only their owner may read: keys and passwords."""

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> Path:
    """Write a file that nobody else may read, not even for a moment. Return its path."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
    return path
