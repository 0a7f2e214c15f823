"""A hook of MkDocs for the differences between the repository's pages and the site's pages.

In the repository a page links to `../notebooks/x.ipynb`. The site has the notebooks below its root.
`<details>` contains Markdown on both.
"""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def on_files(files: Files, config: Any) -> Files:
    """Add the notebooks."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page's text with the site's own links."""
    return markdown.replace("](../notebooks/", "](notebooks/").replace(
        "<details>", '<details markdown="1">'
    )
