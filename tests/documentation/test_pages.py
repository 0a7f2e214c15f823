"""The README and the pages: their length, links and code. Each page is in the site."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documentation.pages import DOCS, PAGES, PROJECT, README, Block, blocks
from tests.documentation.running import ELSEWHERE, can_run

CODE = [block for page in PAGES for block in blocks(page) if not block.is_output]
LINKED = [*PAGES, PROJECT / "CONTRIBUTING.md", PROJECT / "CHANGELOG.md"]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) < 200


def test_the_two_commands_are_the_first_code_of_the_readme() -> None:
    first = blocks(README)[0].source
    assert first.startswith("make demo")
    assert "\nmake test" in first


def test_the_readme_says_pyspark_python_before_its_first_query() -> None:
    text = README.read_text()
    assert text.index("PYSPARK_PYTHON") < text.index("```python")


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_each_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_without_code(page)):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in _anchors(target), f"{page.name}: {link}"


@pytest.mark.parametrize("start", [README, DOCS / "index.md"], ids=lambda page: page.name)
def test_each_page_is_two_links_away(start: Path) -> None:
    one = _linked_from(start)
    two = one.union(*map(_linked_from, one))
    assert sorted(set(PAGES) - two - {start, README, DOCS / "index.md"}) == []


# A user meets them as another error's kind, or never by their names.
_UNNAMED = {"ConditionError", "RegistryError", "RequestTimeoutError", "TooLargeError"} | {
    # The command line shows their texts alone.
    "LineError",
    "NotAllWrittenError",
}


def test_each_error_is_on_the_page_of_errors() -> None:
    bases: dict[str, set[str]] = {}
    for path in (PROJECT / "spark_kafka_source").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {each.id for each in node.bases if isinstance(each, ast.Name)}

    def is_error(name: str) -> bool:
        return name == "KafkaError" or any(map(is_error, bases.get(name, ())))

    page = (DOCS / "errors.md").read_text()
    named = {name for name in bases if re.search(rf"`{name}`", page)}
    assert {name for name in bases if is_error(name)} - named == _UNNAMED


def _linked_from(page: Path) -> set[Path]:
    links = (each.partition("#")[0] for each in _LINK.findall(_without_code(page)))
    targets = {(page.parent / each).resolve() for each in links if each.endswith(".md")}
    return targets & set(PAGES)


def test_a_package_index_can_follow_the_links_of_the_readme() -> None:
    """This holds when the project has an address. Until then, links lead into the repository."""
    if "urls" in tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]:
        assert not [each for each in _LINK.findall(README.read_text()) if "://" not in each]


def test_each_page_is_in_the_site() -> None:
    names = {page.name for page in DOCS.glob("*.md")}
    names |= {f"notebooks/{each.stem}.md" for each in (PROJECT / "notebooks").glob("*.ipynb")}
    names |= {"changes.md", "security-reports.md"}  # The site takes them from the project's root.
    in_nav = [each.partition("#")[0] for each in _pages_of(_configuration()["nav"])]
    assert sorted(in_nav) == sorted(names)


@pytest.mark.parametrize("block", CODE, ids=str)
def test_each_block_of_code_runs_or_says_why_not(block: Block) -> None:
    if block.reason is None and (block.page.name, block.language) not in ELSEWHERE:
        assert can_run(block), "no test runs it: write `<!-- not run: why -->` before it"


@pytest.mark.parametrize("block", [each for each in CODE if each.language == "python"], ids=str)
def test_each_block_of_python_is_python(block: Block) -> None:
    ast.parse(block.source)


@pytest.mark.parametrize(("page", "test"), [(page, test) for (page, _), test in ELSEWHERE.items()])
def test_what_runs_elsewhere_names_the_page(page: str, test: str) -> None:
    assert page in (PROJECT / test).read_text()


def _configuration() -> Any:
    return yaml.safe_load((PROJECT / "mkdocs.yml").read_text())


def _pages_of(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    entries = nav if isinstance(nav, list) else list(nav.values())
    return [page for each in entries for page in _pages_of(each)]


def _without_code(page: Path) -> str:
    text = page.read_text()
    for block in blocks(page):
        text = text.replace(block.source, "")
    return re.sub(r"`[^`\n]*`(?!\])", "", text)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub and MkDocs make them."""
    found = _HEADING.findall(page.read_text())
    headings = (re.sub(r"[`*]|\]\([^)]*\)", "", each) for each in found)
    kept = (re.sub(r"[^\w\s-]", "", each).strip().lower() for each in headings)
    return {re.sub(r"[-\s]+", "-", each) for each in kept}
