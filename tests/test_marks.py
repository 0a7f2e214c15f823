"""A generated text replaces only the text between the marks."""

from pathlib import Path

import pytest

from tools.marks import Marks

BEGIN, END = "<!-- a table (of two) -->", "<!-- end -->"
MARKS = Marks(BEGIN, END)


def test_a_text_goes_between_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    for text in ("| a table |\n| of two |", "| another |"):
        MARKS.write(path, text)
        assert MARKS.split(path) == ("before\n", text, "\nafter\n")
    assert path.read_text() == f"before\n{BEGIN}\n| another |\n{END}\nafter\n"


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}\n"])
def test_a_file_without_the_marks_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(ValueError, match="has no line"):
        MARKS.write(path, "a table")
    assert path.read_text() == text
