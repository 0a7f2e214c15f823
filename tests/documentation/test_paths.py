"""The files and folders that the pages for contributors name are there."""

import re
from pathlib import Path

import pytest

from tests.documentation.pages import DOCS, PROJECT

PAGES = [PROJECT / "CONTRIBUTING.md", *sorted((DOCS / "contributors" / "decisions").glob("*.md"))]
_ROOTS = [PROJECT, *(PROJECT / root for root in ("spark_kafka_source", "tests"))]
# The table of CONTRIBUTING.md leaves out `values/`, where it stands before.
_ROOTS.append(PROJECT / "spark_kafka_source" / "values")
_NAMED = re.compile(r"`([\w./]+/[\w./]*)`")
_GIVEN_TO_PYTEST = re.compile(r"(?<![\w/])tests/[\w/]+(?:\.\w+)?")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_each_path_exists(page: Path) -> None:
    text = page.read_text()
    paths = {*_NAMED.findall(text), *_GIVEN_TO_PYTEST.findall(text)}
    assert [each for each in paths if not any((root / each).exists() for root in _ROOTS)] == []
