"""A hook of MkDocs for the differences between the repository's pages and the site's pages.

In the repository a page links to `../notebooks/x.ipynb`. The site has a page for each
notebook, with its outputs. `<details>` contains Markdown on both.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

PROJECT = Path(__file__).parents[2]
NOTEBOOKS = PROJECT / "notebooks"
_OF_PROJECT = {"CHANGELOG.md": "changes.md", "SECURITY.md": "security-reports.md"}
_TO_NOTEBOOK = re.compile(r"\]\(\.\./notebooks/(\w+)\.ipynb\)")
_MEASURED = "Measured"
_LESS = 0.5


def on_files(files: Files, config: Any) -> Files:
    """Add the notebooks, the changes, and how to report a fault of security."""
    for name, place in _OF_PROJECT.items():
        content = _linked_in_site((PROJECT / name).read_text())
        files.append(File.generated(config, place, content=content))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        for each in _pages_of(path, config):
            files.append(each)
    return files


def _linked_in_site(markdown: str) -> str:
    for name, place in _OF_PROJECT.items():
        markdown = markdown.replace(f"]({name})", f"]({place})")
    return markdown.replace("](docs/", "](")


def _pages_of(notebook: Path, config: Any) -> Iterator[File]:
    """Yield the notebook itself, its page and its pictures."""
    name = notebook.stem
    yield File.generated(config, f"notebooks/{notebook.name}", abs_src_path=str(notebook))
    given = {"unique_key": name, "output_files_dir": name}
    exporter: Any = MarkdownExporter
    markdown, resources = exporter().from_filename(str(notebook), given)
    link = f"[Download this notebook]({notebook.name})"
    yield File.generated(config, f"notebooks/{name}.md", content=f"{markdown}\n\n{link}\n")
    for picture, content in resources["outputs"].items():
        yield File.generated(config, f"notebooks/{picture}", content=content)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page's text with the site's own links.

    In the search, a guide comes before the page with its figures.
    """
    if page.ancestors and page.ancestors[-1].title == _MEASURED:
        page.meta.setdefault("search", {"boost": _LESS})
    linked = _TO_NOTEBOOK.sub(r"](notebooks/\1.md)", markdown)
    return linked.replace("<details>", '<details markdown="1">')
