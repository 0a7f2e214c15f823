"""What a page of the built site shows: its words, and where its links lead."""

import re
from html.parser import HTMLParser
from pathlib import Path

_INLINE = {"a", "code", "em", "small", "span", "strong", "sub", "sup"}
_VOID = {"br", "hr", "img", "input", "link", "meta", "path", "source", "wbr"}
_DOCSTRING = "doc-object"
_WORD = re.compile(r"\S*[^\W_]\S*")


class Shown(HTMLParser):
    """A page: the text of its article without docstrings, its anchors, and its links."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self._text: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(page.read_text())

    @property
    def words(self) -> int:
        """How many words the article has."""
        return words("".join(self._text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an anchor and a link. A block begins another word."""
        given = dict(attrs)
        self.anchors |= {each for each in (given.get("id"), given.get("name")) if each}
        if tag == "a" and (link := given.get("href")):
            self.links.append(link)
        if tag not in _INLINE:
            self._text.append(" ")
        if tag not in _VOID:
            self._open.append((tag, _DOCSTRING in (given.get("class") or "").split()))

    def handle_endtag(self, tag: str) -> None:
        """Close the element, and those in it that HTML closes with it."""
        if any(name == tag for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass
        if tag not in _INLINE:
            self._text.append(" ")

    def handle_data(self, data: str) -> None:
        """Keep the text of the article."""
        is_shown = any(name == "article" for name, _ in self._open)
        if is_shown and not any(is_docstring for _, is_docstring in self._open):
            self._text.append(data)


def words(text: str) -> int:
    """Return how many words a text has: each has a letter or a digit."""
    return len(_WORD.findall(text))
