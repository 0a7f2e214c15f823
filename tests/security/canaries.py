"""Unique texts in place of secrets, and a search for them in files."""

import base64
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Spark itself shows a stream's options here, except redacted ones.
_SHOWN_BY_SPARK = ("events/", "logs/jvm.log", "seen/plan-", "seen/ui-")
# Secrets in wrong places: none of Spark's regular expressions finds them.
_ASTRAY = ("slip ", "password in ", "jaas in ", "user info ")


@dataclass
class Canaries:
    """Unique texts, by name."""

    by_name: dict[str, str] = field(default_factory=dict)

    def new(self, name: str) -> str:
        """Make a new text for a password, a token or a name."""
        return self.known(name, f"Cnry{uuid.uuid4().hex}")

    def known(self, name: str, text: str) -> str:
        """Add a text that exists already."""
        self.by_name[name] = text
        return text

    def found_in(self, directory: Path) -> list[tuple[str, str, int]]:
        """Return name, file and count of all canaries in files. The case of letters is ignored."""
        wanted = [
            (name, form.lower())
            for name, text in self.by_name.items()
            for form in _forms(text.encode())
        ]
        hits = []
        for path in sorted(directory.rglob("*")):
            content = path.read_bytes().lower() if path.is_file() else b""
            place = str(path.relative_to(directory))
            of_spark = place.startswith(_SHOWN_BY_SPARK)
            hits += [
                (name, place, content.count(form))
                for name, form in wanted
                if form in content and not (of_spark and name.startswith(_ASTRAY))
            ]
        return hits


def _forms(text: bytes) -> Iterator[bytes]:
    """Yield the text itself, and its base64 forms for all three alignments."""
    yield text
    # A long text that is cut also shows a part.
    if text.startswith(b"Cnry"):
        yield text[:12]
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + text)
        yield encoded[4 if before else 0 : -4]
