"""The README and the pages: their length, links and code. Each page is in the site."""

import ast
import re
from pathlib import Path

import pytest

from tests.documentation.pages import (
    CONTRIBUTORS,
    COOKBOOK,
    DOCS,
    PAGES,
    PROJECT,
    README,
    SITE,
    UNNAMED_ERRORS,
    Block,
    blocks,
    errors,
    in_nav,
    recipes,
)
from tests.documentation.running import ELSEWHERE, can_run, runs_elsewhere
from tests.documentation.site import shown_notebooks

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
def test_each_page_of_the_site_is_two_links_away(start: Path) -> None:
    assert sorted(set(SITE) - _two_links_from(start) - {DOCS / "index.md"}) == []


def test_each_page_for_contributors_is_two_links_away() -> None:
    assert sorted(set(CONTRIBUTORS) - _two_links_from(PROJECT / "CONTRIBUTING.md")) == []


def _two_links_from(start: Path) -> set[Path]:
    one = _linked_from(start)
    return one.union(*map(_linked_from, one))


# A test unpacks the blocks: one more fails it. Ruff refuses a block that is unpacked and not used.
_RUN_BY_A_TEST = re.compile(r"""\brecipe\(\s*"([\w.]+)",\s*(?:"([^"]+)"|'([^']+)')""")


def test_each_recipe_of_the_cookbook_has_a_test_and_stands_in_its_table() -> None:
    tests = (PROJECT / "tests" / "documentation" / "cookbook").glob("test_*.py")
    calls = _RUN_BY_A_TEST.findall("\n".join(test.read_text() for test in tests))
    tested = {(page, name or other) for page, name, other in calls}
    pages = [page for page in COOKBOOK.glob("*.md") if page.name != "index.md"]
    there = {(page.name, name) for page in pages for name in recipes(page)}
    assert tested == there
    listed = _LINK.findall((COOKBOOK / "index.md").read_text())
    anchors = {f"{page}#{_anchor(name)}" for page, name in there}
    assert sorted(anchors - set(listed)) == []


def test_each_error_is_on_the_page_of_errors() -> None:
    named = set(re.findall(r"`(\w+)`", (DOCS / "errors.md").read_text()))
    assert errors() - named == UNNAMED_ERRORS


def _linked_from(page: Path) -> set[Path]:
    links = (each.partition("#")[0] for each in _LINK.findall(_without_code(page)))
    targets = {(page.parent / each).resolve() for each in links if each.endswith(".md")}
    return targets & set(PAGES)


def test_each_page_is_in_the_site() -> None:
    names = {page.relative_to(DOCS).as_posix() for page in SITE}
    names |= {f"notebooks/{name}.md" for name in shown_notebooks()}
    names |= {"changes.md"}  # The site makes it of CHANGELOG.md.
    assert sorted(each.partition("#")[0] for each in in_nav()) == sorted(names)


@pytest.mark.parametrize("block", CODE, ids=str)
def test_each_block_of_code_runs_or_says_why_not(block: Block) -> None:
    if block.reason is None and not runs_elsewhere(block):
        assert can_run(block), "no test runs it: write `<!-- not run: why -->` before it"


@pytest.mark.parametrize("block", [each for each in CODE if each.language == "python"], ids=str)
def test_each_block_of_python_is_python(block: Block) -> None:
    ast.parse(block.source)


@pytest.mark.parametrize(("page", "test"), [(page, test) for (page, _), test in ELSEWHERE.items()])
def test_what_runs_elsewhere_names_the_page(page: Path, test: str) -> None:
    assert page.name in (PROJECT / test).read_text()


def _without_code(page: Path) -> str:
    text = page.read_text()
    for block in blocks(page):
        text = text.replace(block.source, "")
    return re.sub(r"`[^`\n]*`", "", text)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub and MkDocs make them."""
    return {_anchor(heading) for heading in _HEADING.findall(page.read_text())}


def _anchor(heading: str) -> str:
    plain = re.sub(r"[`*]|\]\([^)]*\)", "", heading)
    kept = re.sub(r"[^\w\s-]", "", plain).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)
