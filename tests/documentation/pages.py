"""Pages of the documentation, and their blocks of code."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
README = PROJECT / "README.md"
CONTRIBUTORS = sorted((DOCS / "contributors").rglob("*.md"))
SITE = sorted(set(DOCS.rglob("*.md")) - set(CONTRIBUTORS))
"""Pages of the site, but for those that it takes from elsewhere."""

PAGES = [README, *SITE, *CONTRIBUTORS]

# A user meets them as another error's kind, or never by their names.
UNNAMED_ERRORS = {"ConditionError", "RegistryError", "RequestTimeoutError", "TooLargeError"} | {
    # The command line shows their texts alone.
    "LineError",
    "NotAllWrittenError",
}

COOKBOOK = DOCS / "cookbook"
_RECIPE = re.compile(r"^## (.+)$", re.MULTILINE)
_HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)  # A comment in code has one "#".

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


def under(page: Path, heading: str) -> list[Block]:
    """Return the blocks of code under a heading of a page, up to the next heading."""
    text = page.read_text()
    found = {each[1]: text.count("\n", 0, each.start()) for each in _HEADING.finditer(text)}
    first = found[heading]
    last = min((line for line in found.values() if line > first), default=text.count("\n"))
    return [block for block in blocks(page) if first < block.line <= last]


def recipes(page: Path) -> list[str]:
    """Return the names of a page's recipes, its second-level headings."""
    return _RECIPE.findall(page.read_text())


def recipe(page: str, name: str) -> list[Block]:
    """Return the blocks of code of a recipe that a test is to run, in their order."""
    found = under(COOKBOOK / page, name)
    return [block for block in found if not (block.is_output or block.reason)]


def errors() -> set[str]:
    """Return the names of the package's errors."""
    bases: dict[str, set[str]] = {}
    for path in (PROJECT / "spark_kafka_source").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {each.id for each in node.bases if isinstance(each, ast.Name)}

    def is_error(name: str) -> bool:
        return name == "KafkaError" or any(map(is_error, bases.get(name, ())))

    return {name for name in bases if is_error(name)}


def in_nav() -> list[str]:
    """Return the pages of the site's navigation, in their order."""
    # The names of functions are texts here.
    text = (PROJECT / "mkdocs.yml").read_text().replace("!!python/name:", "")
    return list(_pages_of(yaml.safe_load(text)["nav"]))


def _pages_of(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav if isinstance(nav, list) else nav.values():
            yield from _pages_of(each)


def _outdented(source: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in source.split("\n"))
