"""A part of a file that a program writes, between two lines that mark it."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Marks:
    """The two lines."""

    begin: str
    end: str

    def write(self, path: Path, text: str) -> None:
        """Puts `text` in the place of what is between the marks."""
        before, _, after = self.split(path)
        path.write_text(f"{before}{self.begin}\n{text}\n{self.end}{after}")

    def split(self, path: Path) -> tuple[str, str, str]:
        """The text before, between and after the marks; `ValueError` where the file lacks them."""
        pattern = f"(.*){re.escape(self.begin)}\n(.*?)\n?{re.escape(self.end)}(.*)"
        match = re.fullmatch(pattern, path.read_text(), re.DOTALL)
        if match is None:
            raise ValueError(f"{path} has no line {self.begin!r} and after it {self.end!r}")
        return match[1], match[2], match[3]
