"""The address of the repository, for the site and for a release.

`hatch_build.py` reads it from the metadata of the build, where nothing of the project is at hand.
"""

import tomllib
from pathlib import Path


def repository_address(project: Path) -> str | None:
    """Return `Repository` of pyproject.toml, without a slash at its end; None if there is none."""
    metadata = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    address: str | None = metadata.get("urls", {}).get("Repository")
    return address and address.rstrip("/")
