"""Make and check what a release uploads: a wheel, an sdist and an SBOM in `dist/`.

    python -m tests.release [--repository https://host/owner/name]

It stops at the first fault. It uploads nothing. The wheel is installed in a clean environment of
each Python that is on the PATH, with the newest dependencies.

A package index shows the README, and there only links to whole addresses work. With `--repository`
the README's links lead to the tag `v<version>` of that repository.
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

PROJECT = Path(__file__).parents[1]
DIST = PROJECT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")

_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")

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


def with_whole_links(readme: str, repository: str) -> str:
    """Return the README with links to pages and pictures of this version in the repository."""

    def whole(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}({repository}/{kind}/v{__version__}/{link[3]})"

    return _LINK.sub(whole, readme)


def copy_sources(directory: Path, repository: str) -> None:
    """Copy the files that git knows, with whole links and the repository as the home page."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=PROJECT, text=True)
    for name in filter(None, listed.split("\0")):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, directory / name)
    readme, project = directory / "README.md", directory / "pyproject.toml"
    readme.write_text(with_whole_links(readme.read_text(), repository))
    urls = f'[project.urls]\nRepository = "{repository}"\n\n[project.scripts]'
    project.write_text(project.read_text().replace("[project.scripts]", urls, 1))


def build(sources: Path) -> list[Path]:
    """Build the sdist, and the wheel from the sdist. Return their paths."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--outdir", str(DIST), str(sources)])
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
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repository", help="where the sources are: https://host/owner/name")
    repository = parser.parse_args().repository
    check_changelog((PROJECT / "CHANGELOG.md").read_text(), __version__)
    with tempfile.TemporaryDirectory() as directory:
        sources = Path(directory) / "sources" if repository else PROJECT
        if repository:
            copy_sources(sources, repository.rstrip("/"))
        else:
            print("Without --repository the README's links do not work on a package index")
        (wheel,) = (each for each in build(sources) if each.suffix == ".whl")
        environments = [
            install(wheel, each, Path(directory) / str(number))
            for number, each in enumerate(pythons())
        ]
        write_sbom(environments[0])
    for each in sorted(DIST.iterdir()):
        print(f"{each.relative_to(PROJECT)}  {each.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
