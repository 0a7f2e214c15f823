"""The parts of a release that need no network."""

from pathlib import Path

import pytest

from tests.documentation.repository import REPOSITORY, set_repository
from tools.oldest import oldest
from tools.release import PROJECT, check_changelog
from tools.repository import repository_address


@pytest.mark.parametrize(
    ("first", "is_ready"),
    [
        ("## 0.2.0, 1 December 2026", True),
        ("## 0.2.0, not yet released", False),
        ("## 0.2.1, 1 December 2026", False),
        ("## 00200, 1 December 2026", False),
        ("", False),
    ],
)
def test_the_changelog_begins_with_the_release(first: str, is_ready: bool) -> None:
    text = f"# Changes\n\n{first}\n\n- This.\n\n## 0.2.0, 1 January 2026\n"
    text = text if first else "# Changes\n"
    if is_ready:
        check_changelog(text, "0.2.0")
    else:
        with pytest.raises(ValueError, match=r"CHANGELOG.md begins with .* give '0.2.0, <date>'"):
            check_changelog(text, "0.2.0")


def test_the_oldest_dependencies_are_those_of_the_project() -> None:
    found = dict(each.split("==") for each in oldest())
    assert {"pyspark", "pyarrow", "numpy", "crc32c", "lz4", "zstandard", "numba"} <= set(found)
    assert found["pyspark"] == "4.0.*"


def test_the_repository_is_one_setting(tmp_path: Path) -> None:
    text = (PROJECT / "pyproject.toml").read_text()
    assert set_repository(text) != text
    for given, address in ((text, None), (set_repository(text), REPOSITORY)):
        (tmp_path / "pyproject.toml").write_text(given)
        assert repository_address(tmp_path) == address
