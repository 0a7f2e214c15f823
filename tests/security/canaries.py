"""Texts that nobody else has, in the place of secrets, and a search for them in files."""

import base64
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Where Spark itself shows a stream's options, but for those that it redacts.
_SHOWN_BY_SPARK = ("events/", "logs/jvm.log", "seen/plan-", "seen/ui-")
# Secrets in places where no secret belongs: no regular expression of Spark's finds them.
_ASTRAY = ("slip ", "password in ", "jaas in ", "user info ")


@dataclass
class Canaries:
    """Texts that nobody else has, by what they stand for."""

    by_name: dict[str, str] = field(default_factory=dict)

    def new(self, name: str) -> str:
        """Make a new text; it may serve as a password, a token or a name."""
        return self.known(name, f"Cnry{uuid.uuid4().hex}")

    def known(self, name: str, text: str) -> str:
        """One that was there before."""
        self.by_name[name] = text
        return text

    def found_in(self, directory: Path) -> list[tuple[str, str, int]]:
        """Which canaries are in which files, and how often; whatever the letters' case."""
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
    """As it is, backwards-escaped UTF-16 apart: and in base64, wherever it begins in it."""
    yield text
    # What is cut where it is long shows a part, too.
    if text.startswith(b"Cnry"):
        yield text[:12]
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + text)
        yield encoded[4 if before else 0 : -4]
