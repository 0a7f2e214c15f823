"""The records of decisions: each is one screen, has all its parts, and is in the index."""

import re
from pathlib import Path

import pytest

from tests.documentation.pages import DOCS

INDEX = DOCS / "contributors" / "decisions" / "index.md"
RECORDS = sorted(set(INDEX.parent.glob("*.md")) - {INDEX})
PARTS = ("**Context.**", "**Decision.**", "**Consequences.**", "**Look again when**")


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_record_is_one_screen_and_has_its_parts(record: Path) -> None:
    text = record.read_text()
    assert len(text.splitlines()) <= 45
    assert text.startswith(f"# {int(record.stem[:2])}. ")
    assert "\n*Since " in text
    assert [part for part in PARTS if part not in text] == []
    assert "**Measured" in text or "**Tried.**" in text


def test_the_index_has_the_records_in_their_order() -> None:
    linked = re.findall(
        r"^\| \[(\d+)\. [^]]+\]\((\d\d)[^)]*\.md\)", INDEX.read_text(), re.MULTILINE
    )
    assert [(int(number), int(name)) for number, name in linked] == [
        (number, number) for number in range(1, len(RECORDS) + 1)
    ]
