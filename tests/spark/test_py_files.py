"""A package that came by `--py-files` alone: its streams would fail inside Spark."""

from pathlib import Path

import pytest

from spark_kafka_source.spark.py_files import comes_by_py_files

OWN = Path("/tmp/spark-1/userFiles-2")
ZIP = OWN / "package.zip"


@pytest.mark.parametrize(
    ("root", "files", "python_path", "alone"),
    [
        (ZIP, "file:///home/me/package.zip", "", True),
        (ZIP, "/home/me/other.zip,/home/me/package.zip", "/opt/lib:/opt/more.zip", True),
        (ZIP, "", "", True),  # SparkContext.addPyFile
        (Path("/home/me/package.zip"), "hdfs://name:9000/package.zip", "", True),
        (ZIP, "file:///home/me/package.zip", "/home/me/package.zip", False),
        (Path("/opt/venv/lib/python3.11/site-packages"), "", "", False),
        (Path("/opt/venv/lib/python3.11/site-packages"), "/home/me/other.zip", "", False),
        (Path("/home/me/checkout"), "", "/home/me/checkout", False),
    ],
)
def test_it_is_found_out(root: Path, files: str, python_path: str, alone: bool) -> None:
    assert comes_by_py_files(root, files, OWN, python_path) is alone
