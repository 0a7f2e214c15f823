"""Lines of a file that another process appends to."""

from collections.abc import Iterator
from pathlib import Path


class Lines:
    """A reader of new lines in a file. An incomplete line is left for later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def advance(self) -> Iterator[str]:
        """Yield the new lines."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                yield line.decode()
