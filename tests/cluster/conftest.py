"""A standalone cluster for all tests of this folder, and ways to bring the package to it."""

import os
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.standalone import StandaloneCluster

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("cluster") / "files") as cluster:
        yield cluster


@pytest.fixture(scope="package")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has all dependencies, and not the package."""
    return _environment(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*command, str(directory), str(PROJECT)], check=True, timeout=300)
    return next(directory.glob("*.whl"))


@pytest.fixture(scope="package")
def package_zip(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a zip that Python imports from."""
    path = tmp_path_factory.mktemp("zip") / "package.zip"
    os.link(wheel, path)
    return path


@pytest.fixture(scope="package")
def archive(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A packed environment that has the package, as `venv-pack` makes it."""
    directory = tmp_path_factory.mktemp("archive")
    python = _environment(directory / "environment")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(next(python.parents[1].glob("lib/python*/site-packages")))
    path = directory / "environment.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as packed:
        packed.add(directory / "environment", ".")
    return path


def _environment(directory: Path) -> Path:
    """Make an environment with the packages of this one, without its editable installs."""
    venv.create(directory)
    (own,) = directory.glob("lib/python*/site-packages")
    (own / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return directory / "bin" / "python"
