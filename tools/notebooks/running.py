"""Running a notebook as a reader does, and keeping its repeatable outputs."""

import os
from pathlib import Path
from unittest.mock import patch

from nbclient import NotebookClient
from nbformat import NotebookNode, reads, writes
from nbformat.v4 import new_code_cell

_DIRECTORY = Path(__file__).parents[2] / "notebooks"
DATABRICKS = _DIRECTORY / "databricks.ipynb"
"""The notebook without outputs. It needs a workspace: `test_databricks.py` has stand-ins."""

NOTEBOOKS = sorted(set(_DIRECTORY.glob("*.ipynb")) - {DATABRICKS})

SESSION = """
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
"""
"""The session that a cluster provides, as the source of a cell."""

PNG = "image/png"
_TIMEOUT_SECONDS = 600


def read(path: Path) -> NotebookNode:
    notebook: NotebookNode = reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def write(path: Path, notebook: NotebookNode) -> None:
    text: str = writes(notebook)  # type: ignore[no-untyped-call]
    path.write_text(text + "\n")


def run(notebook: NotebookNode, **environment: str) -> NotebookNode:
    """Run the notebook top to bottom in its own kernel. Raise `CellExecutionError` on failure."""
    with patch.dict(os.environ, environment):
        client = NotebookClient(
            notebook,
            timeout=_TIMEOUT_SECONDS,
            startup_timeout=_TIMEOUT_SECONDS,
            # Else the outputs of a cell that come later than four seconds after its end are lost.
            iopub_timeout=_TIMEOUT_SECONDS,
            kernel_name="python3",
        )
        executed: NotebookNode = client.execute()
    return kept(executed)


def kept(notebook: NotebookNode) -> NotebookNode:
    """Keep the printed texts and pictures of the cells. Remove times, versions and logs."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            text = _stdout(cell)
            cell.outputs = [*([_printed(text)] if text else []), *_pictures(cell)]
    return notebook


def _pictures(cell: NotebookNode) -> list[NotebookNode]:
    found = [each.data[PNG] for each in cell.outputs if PNG in each.get("data", {})]
    drawn = {"output_type": "display_data", "metadata": {}}
    return [NotebookNode(**drawn, data=NotebookNode({PNG: each})) for each in found]  # type: ignore[no-untyped-call]


def drawn(notebook: NotebookNode) -> list[int]:
    """Return the number of pictures of each code cell."""
    return [len(_pictures(cell)) for cell in notebook.cells if cell.cell_type == "code"]


def _stdout(cell: NotebookNode) -> str:
    """Return the printed text of a cell. It comes in a varying number of pieces."""
    return "".join(each["text"] for each in cell.outputs if each.get("name") == "stdout")


def _printed(text: str) -> NotebookNode:
    return NotebookNode(output_type="stream", name="stdout", text=text)  # type: ignore[no-untyped-call]


def shown(notebook: NotebookNode) -> list[str]:
    """Return the printed text of each code cell."""
    return [_stdout(cell) for cell in notebook.cells if cell.cell_type == "code"]


def code_cell(source: str) -> NotebookNode:
    """Return an additional cell, for a notebook that is run but not saved."""
    cell: NotebookNode = new_code_cell(source)  # type: ignore[no-untyped-call]
    return cell
