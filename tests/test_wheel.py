"""What users install: a wheel in pure Python, that Spark finds by itself."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]

FIND_WITHOUT_REGISTERING = """
import spark_kafka_source
from pyspark.sql import SparkSession

print(spark_kafka_source.__file__)
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    spark.read.format("pykafka").load()
except Exception as error:
    print(error)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, str(directory), str(PROJECT)], check=True, timeout=300)
    return next(directory.glob("*.whl"))


@pytest.mark.slow
def test_is_pure_python_and_whole(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "spark_kafka_source").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }

    assert wheel.name.endswith("-py3-none-any.whl")
    assert {name for name in names if ".dist-info/" not in name} == sources | {"pyspark_pykafka.py"}


@pytest.mark.slow
@pytest.mark.spark
def test_spark_finds_it_without_registration(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYSPARK_PYTHON": sys.executable}

    shown = subprocess.run(
        [sys.executable, "-c", FIND_WITHOUT_REGISTERING],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout

    assert shown.startswith(str(tmp_path))
    assert "Option 'kafka.bootstrap.servers': is missing" in shown
