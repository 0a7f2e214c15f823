"""A generated part of a file, between two marks."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Marks:
    """The two lines around a generated part."""

    begin: str
    end: str

    def write(self, path: Path, text: str) -> None:
        """Replace the text between the marks."""
        before, _, after = self.split(path)
        path.write_text(f"{before}{self.begin}\n{text}\n{self.end}{after}")

    def split(self, path: Path) -> tuple[str, str, str]:
        """Return the text before, between and after the marks. Raise `ValueError` without marks."""
        pattern = f"(.*){re.escape(self.begin)}\n(.*?)\n?{re.escape(self.end)}(.*)"
        match = re.fullmatch(pattern, path.read_text(), re.DOTALL)
        if match is None:
            raise ValueError(f"{path} has no line {self.begin!r} and after it {self.end!r}")
        return match[1], match[2], match[3]
