"""A hook of MkDocs for the differences between the repository's pages and the site's pages.

In the repository a page links to `../notebooks/x.ipynb`. The site has a page for each notebook
that has outputs, and the others to download. The site has neither the pages for contributors nor
the files of the project's root: a link to one leads to the file in the repository, if
pyproject.toml has its address, or else becomes the file's place in words. `<details>` contains
Markdown on both. The repository shows nothing of `<!-- site: this -->`, and the site shows `this`.

A browser breaks a long name anywhere. The site's pages say where a name may be broken.
"""

import html
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

from spark_kafka_source.version import VERSION
from tools.repository import repository_address

PROJECT = Path(__file__).parents[2]
NOTEBOOKS = PROJECT / "notebooks"
START = "index.md"
_TO_NOTEBOOK = re.compile(r"\]\(\.\./notebooks/(\w+)\.ipynb\)")
_TO_CONTRIBUTORS = re.compile(r"\[([^]]+)\]\((?:\.\./)?(contributors/[\w./-]+)(#[\w-]+)?\)")
_TO_PROJECT = re.compile(r"\[([^]]+)\]\(\.\./([A-Z]+(?:\.md)?)(#[\w-]+)?\)")
_FOR_SITE = re.compile(r"<!-- site: (.+?) -->")
_CODE = re.compile(r"(?<!<span></span>)<code>([^<]+)</code>")
_IN_A_NAME = re.compile(r"(?<=[\w)][._/=])(?=\w)|(?<=[a-z0-9])(?=[A-Z])")
_CELL = re.compile(r"<td>.*?</td>", re.DOTALL)
_BEFORE_A_UNIT = re.compile(r"(?<=\d) (?=(?:x|s|ms|ns|us|MiB|GiB)\b)")
_WHOLE = 20
"""Code of so many letters or fewer is never broken."""
_NAME = 36
"""A name of so many letters or fewer is not broken in the first column of a wide table."""


def on_config(config: Any) -> Any:
    """Show the repository on each page, if it has an address."""
    if address := repository_address(PROJECT):
        config.repo_url, config.repo_name = address, "/".join(address.split("/")[-2:])
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the notebooks, and the changes of the newest version."""
    changes = newest_changes((PROJECT / "CHANGELOG.md").read_text())
    files.append(File.generated(config, "changes.md", content=changes))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.name}", abs_src_path=str(path)))
    for name in shown_notebooks():
        for each in _pages_of(NOTEBOOKS / f"{name}.ipynb", config):
            files.append(each)
    return files


def shown_notebooks() -> list[str]:
    """Return the names of the notebooks that have outputs."""
    cells = {path.stem: json.loads(path.read_text())["cells"] for path in NOTEBOOKS.glob("*.ipynb")}
    return sorted(name for name in cells if any(cell.get("outputs") for cell in cells[name]))


def newest_changes(changelog: str) -> str:
    """Return the changelog with its first version alone, and with the site's links."""
    parts = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    newest = f"{parts[0]}{parts[1].rstrip()}"
    if earlier := [part[3:].partition(",")[0].strip() for part in parts[2:]]:
        newest += (
            f"\n\n`CHANGELOG.md` in the repository has earlier versions: {', '.join(earlier)}."
        )
    return newest.replace("](docs/", "](") + "\n"


def _pages_of(notebook: Path, config: Any) -> Iterator[File]:
    """Yield the page of a notebook, and its pictures."""
    name = notebook.stem
    given = {"unique_key": name, "output_files_dir": name}
    exporter: Any = MarkdownExporter
    markdown, resources = exporter().from_filename(str(notebook), given)
    link = f"[Download this notebook]({notebook.name})"
    yield File.generated(config, f"notebooks/{name}.md", content=f"{markdown}\n\n{link}\n")
    for picture, content in resources["outputs"].items():
        yield File.generated(config, f"notebooks/{picture}", content=content)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Return the page's text with the site's own links. The start page has no columns beside it."""
    if page.file.src_uri == START:
        page.meta["hide"] = ["navigation", "toc"]
    return in_site(markdown)


def in_site(markdown: str) -> str:
    """Return a page's text with links that work on the site."""
    linked = _TO_NOTEBOOK.sub(_in_notebooks, markdown)
    for elsewhere, place in ((_TO_CONTRIBUTORS, "docs/"), (_TO_PROJECT, "")):
        linked = elsewhere.sub(partial(_in_repository, place), linked)
    return _FOR_SITE.sub(r"\1", linked.replace("<details>", '<details markdown="1">'))


def _in_notebooks(link: re.Match[str]) -> str:
    name = link[1]
    return f"](notebooks/{name}.{'md' if name in shown_notebooks() else 'ipynb'})"


def _in_repository(folder: str, link: re.Match[str]) -> str:
    """Return a link to a file of this version in the repository, or the file's place in words."""
    words, path, heading = link[1], f"{folder}{link[2]}", link[3] or ""
    if address := repository_address(PROJECT):
        return f"[{words}]({address}/blob/v{VERSION}/{path}{heading})"
    return f"{words} (`{path}` in the repository)"


def on_post_page(output: str, **_: Any) -> str:
    """Return the page with places for breaks. The search's index has none of them.

    On a page that the search opens, the words in such code are not marked. The page does not ask
    the repository's host for the number of its stars.
    """
    marked = _CELL.sub(_with_whole_figures, _CODE.sub(_with_breaks, output))
    return marked.replace(' data-md-component="source"', "")


def _with_breaks(code: re.Match[str]) -> str:
    size = len(html.unescape(code[1]))
    if size <= _WHOLE:
        return f'<code class="whole">{code[1]}</code>'
    kind = ' class="name"' if size <= _NAME else ""
    return f"<code{kind}>{_IN_A_NAME.sub('<wbr>', code[1])}</code>"


def _with_whole_figures(cell: re.Match[str]) -> str:
    return _BEFORE_A_UNIT.sub("&nbsp;", cell[0])
