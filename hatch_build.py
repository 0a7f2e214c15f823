"""A hook of the build: it gives a wheel and an sdist the README, with links that work anywhere.

A package index shows the README, and there only links to whole addresses work. Where pyproject.toml
has a `Repository` in `[project.urls]`, the links lead to the tag `v<version>` of that repository.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# To a page or a picture of this repository: neither to a whole address nor to a heading.
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)")
_VERSION = re.compile(r'VERSION = "([^"]+)"')


class Readme(MetadataHookInterface):
    """The dynamic field `readme` of pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := metadata.get("urls", {}).get("Repository"):
            text = self._with_whole_links(text, repository.rstrip("/"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

    def _with_whole_links(self, text: str, repository: str) -> str:
        version_module = Path(self.root, "spark_kafka_source", "version.py").read_text()
        version = _VERSION.findall(version_module)[0]

        def whole(link: re.Match[str]) -> str:
            kind = "raw" if link[1] else "blob"
            return f"{link[1]}{link[2]}({repository}/{kind}/v{version}/{link[3]})"

        return _LINK.sub(whole, text)
