"""The notebooks run top to bottom, as a reader would run them."""

from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode, reads

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def _read(path: Path) -> NotebookNode:
    notebook: NotebookNode = reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    return notebook


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_top_to_bottom(path: Path) -> None:
    NotebookClient(_read(path), timeout=180, kernel_name="python3").execute()


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"quickstart", "backfill_by_offset_range"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_without_outputs(path: Path) -> None:
    cells = _read(path).cells

    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
