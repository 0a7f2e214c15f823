"""Pages of the documentation, and their blocks of code."""

import re
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
README = PROJECT / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<source>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code. `reason` says why no test runs it; None where a test does."""

    page: Path
    line: int
    language: str
    source: str
    reason: str | None

    @property
    def is_output(self) -> bool:
        """Whether the block shows text, not code."""
        return self.language == "text"

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in their order."""
    text = page.read_text()
    return [
        Block(
            page,
            text.count("\n", 0, found.start("source")),
            found["language"],
            _outdented(found["source"], found["indent"]),
            found["reason"],
        )
        for found in _BLOCK.finditer(text)
    ]


def _outdented(source: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in source.split("\n"))
