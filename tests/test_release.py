"""The parts of a release that need no network."""

import re
import tomllib
from pathlib import Path

import pytest

from spark_kafka_source import __version__
from tests.oldest import oldest
from tests.release import PROJECT, check_changelog, copy_sources, with_whole_links


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


def test_links_of_the_readme_work_on_a_package_index(tmp_path: Path) -> None:
    copy_sources(tmp_path, "https://host/owner/name")
    readme = (tmp_path / "README.md").read_text()
    targets = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(targets) == len(re.findall(r"\]\(", (PROJECT / "README.md").read_text()))
    assert all(each.startswith("https://") for each in targets)
    at = f"https://host/owner/name/{{}}/v{__version__}"
    assert f"[Writing]({at.format('blob')}/docs/writing.md)" in readme
    assert f"]({at.format('raw')}/docs/images/scans.svg)" in readme
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert project["urls"] == {"Repository": "https://host/owner/name"}
    assert project["scripts"]


def test_other_links_stay() -> None:
    text = "[a](https://b/c.md) [top](#top) [mail](mailto:a@b)"
    assert with_whole_links(text, "https://host") == text
