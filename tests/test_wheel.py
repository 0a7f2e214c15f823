"""The wheel for users: pure Python, with types, and found by Spark itself."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from spark_kafka_source import __version__
from tests.documentation.repository import REPOSITORY, set_repository

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

# In strict mode an unneeded `ignore` is an error. So a value of type Any would fail the check.
TYPED_PROGRAM = """
from typing import assert_type

from spark_kafka_source import KafkaConsumer, OffsetAndMetadata, TopicPartition
from spark_kafka_source import KafkaConsummer  # type: ignore[attr-defined]
from spark_kafka_source.testing import LocalKafka

def program(consumer: KafkaConsumer, kafka: LocalKafka) -> None:
    next_offsets = consumer.poll(timeout_ms=1).next_offsets
    assert_type(next_offsets, dict[TopicPartition, OffsetAndMetadata])
    assert_type([record.offset for record in consumer], list[int])
    assert_type(kafka.bootstrap_servers, str)
    consumer.poll(timeout=1)  # type: ignore[call-arg]
    TopicPartition("t", "0")  # type: ignore[arg-type]
"""


def sources() -> set[str]:
    """Return the files of the package."""
    return {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "spark_kafka_source").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }


def kept_files() -> list[str]:
    """Return the files that git keeps, and those that it would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    return subprocess.check_output(command, cwd=PROJECT, text=True).split("\0")[:-1]


def built(sources: Path, directory: Path) -> Path:
    """Return a wheel of these sources."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, str(directory), str(sources)], check=True, timeout=500)
    return next(directory.glob("*.whl"))


def metadata(wheel: Path) -> Message:
    """Return the fields by which an index shows a wheel. The payload is the README."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(PROJECT, tmp_path_factory.mktemp("wheel"))


@pytest.mark.long
def test_is_pure_python_and_whole(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert wheel.name.endswith("-py3-none-any.whl")
    assert {name for name in names if ".dist-info/" not in name} == sources() | {
        "pyspark_pykafka.py"
    }


@pytest.mark.long
def test_it_is_installed_and_imported(wheel: Path, tmp_path: Path) -> None:
    """In a new environment, which takes the dependencies from this one."""
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, str(wheel)], check=True, timeout=500)
    (site_packages,) = tmp_path.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    show = "import spark_kafka_source as s; s.KafkaConsumer; print(s.__file__, s.__version__)"
    shown = subprocess.check_output([python, "-I", "-c", show], text=True, timeout=120).split()
    assert shown == [str(site_packages / "spark_kafka_source" / "__init__.py"), __version__]


@pytest.mark.long
def test_an_index_shows_the_readme(wheel: Path) -> None:
    """As it is while pyproject.toml has no address of the repository."""
    shown = metadata(wheel)
    assert shown["Description-Content-Type"] == "text/markdown"
    if "Project-URL" not in shown:
        assert shown.get_payload() == (PROJECT / "README.md").read_text()


@pytest.mark.long
def test_an_index_can_follow_all_links_once_the_repository_has_an_address(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    for name in kept_files():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, sources / name)
    project, readme = sources / "pyproject.toml", sources / "README.md"
    project.write_text(set_repository(project.read_text()))
    others = "[a](https://b/c.md) [top](#top) [mail](mailto:a@b)\n"
    before = readme.read_text()
    readme.write_text(before + others)
    shown = metadata(built(sources, tmp_path))
    assert shown.get_all("Project-URL") == [f"Repository, {REPOSITORY}"]
    text = str(shown.get_payload())
    assert text.endswith(others)
    targets = re.findall(r"\]\(([^)]+)\)", text.removesuffix(others))
    assert len(targets) == before.count("](")
    assert all(each.startswith("https://") for each in targets)
    at = f"{REPOSITORY}/{{}}/v{__version__}/docs"
    assert f"]({at.format('blob')}/writing.md)" in text
    assert re.search(rf"!\[[^]]*\]\({at.format('raw')}/images/\w+\.svg\)", text)


@pytest.mark.long
def test_the_source_archive_is_whole(tmp_path: Path) -> None:
    """`pip` builds a wheel from it, with the build system in pyproject.toml."""
    backend = tmp_path / "hatchling"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "hatchling>=1.26"]
    subprocess.run([*command, "--target", str(backend)], check=True, timeout=500)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(backend)},
        cwd=PROJECT,
        check=True,
        timeout=500,
    )
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert names - {"PKG-INFO"} == {name for name in kept_files() if not name.startswith(".ci/")}


@pytest.mark.long
def test_a_strict_user_sees_its_types(wheel: Path, tmp_path: Path) -> None:
    """The wheel is installed: only then py.typed counts. A misspelt name is not of type Any."""
    environment = tmp_path / "environment"
    venv.create(environment)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site_packages)
    program = tmp_path / "program.py"
    program.write_text(TYPED_PROGRAM)
    python = environment / "bin" / "python"

    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python)]
    run = subprocess.run(
        [*command, str(program)],
        env={name: value for name, value in os.environ.items() if name != "MYPYPATH"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )

    assert run.stdout.startswith("Success"), run.stdout + run.stderr


@pytest.mark.long
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
        timeout=500,
    ).stdout

    assert shown.startswith(str(tmp_path))
    assert "Option 'kafka.bootstrap.servers': is missing" in shown
