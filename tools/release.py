"""Make and check what a release uploads: a wheel, an sdist and an SBOM in `dist/`.

    python -m tools.release

It stops at the first fault. It uploads nothing. The wheel is installed in a clean environment of
each Python that is on the PATH, with the newest dependencies.

`Repository` in pyproject.toml is the address of the sources. Without it the README's links do not
work on a package index, and this says so.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from spark_kafka_source import __version__
from tools.repository import repository_address

PROJECT = Path(__file__).parents[1]
DIST = PROJECT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")

_SMOKE = """
import sys

import pyarrow
import spark_kafka_source as package

assert package.__version__ == {version!r}, package.__version__
for name in package.__all__:
    getattr(package, name)
print("Python", sys.version.split()[0], "with pyarrow", pyarrow.__version__)
"""


def check_changelog(text: str, version: str) -> None:
    """Raise `ValueError` unless the first section is that of this version, with a date."""
    first = re.search(r"^## (.*)$", text, re.MULTILINE)
    if first is None or not re.fullmatch(rf"{re.escape(version)}, \d{{1,2}} \w+ \d{{4}}", first[1]):
        found = first[1] if first else "no section"
        raise ValueError(f"CHANGELOG.md begins with {found!r}: give '{version}, <date>'")


def build() -> list[Path]:
    """Build the sdist, and the wheel from the sdist. Return their paths."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--outdir", str(DIST), str(PROJECT)])
    made = sorted(DIST.iterdir())
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, made)])
    return made


def install(wheel: Path, python: str, directory: Path) -> Path:
    """Install the wheel in a new environment, and import all public names. Return its Python."""
    _run([python, "-m", "venv", str(directory)])
    own = directory / "bin" / "python"
    _run([str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)])
    _run([str(own), "-m", "pip", "check"])
    _run([str(own), "-c", _SMOKE.format(version=__version__)], directory)
    _run([str(directory / "bin" / "spark-kafka-source"), "--help"], directory, quiet=True)
    return own


def write_sbom(python: Path) -> Path:
    """Write the packages of an environment that has only this one, as CycloneDX JSON."""
    path = DIST / f"spark_kafka_source-{__version__}.cdx.json"
    tool = [sys.executable, "-m", "cyclonedx_py", "environment", str(python)]
    about = ["--pyproject", str(PROJECT / "pyproject.toml"), "--output-reproducible"]
    _run([*tool, *about, "--output-file", str(path)])
    return path


def pythons() -> Iterator[str]:
    """Yield the paths of the Pythons at hand."""
    for version in PYTHONS:
        path = shutil.which(f"python{version}")
        # A shim of pyenv is on the PATH, but need not lead to a Python.
        if path and subprocess.run([path, "--version"], check=False).returncode == 0:
            yield path
        else:
            print(f"Python {version}: not on the PATH, so not tried")


def _run(command: Sequence[str], directory: Path = PROJECT, *, quiet: bool = False) -> None:
    output = subprocess.DEVNULL if quiet else None
    subprocess.run(command, cwd=directory, check=True, timeout=900, stdout=output)


def main() -> None:
    """Make a release, and show the files."""
    argparse.ArgumentParser(description=main.__doc__).parse_args()
    check_changelog((PROJECT / "CHANGELOG.md").read_text(), __version__)
    if repository_address(PROJECT) is None:
        print("pyproject.toml has no address: the README's links do not work on a package index")
    (wheel,) = (each for each in build() if each.suffix == ".whl")
    with tempfile.TemporaryDirectory() as directory:
        environments = [
            install(wheel, each, Path(directory) / str(number))
            for number, each in enumerate(pythons())
        ]
        write_sbom(environments[0])
    for each in sorted(DIST.iterdir()):
        print(f"{each.relative_to(PROJECT)}  {each.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
