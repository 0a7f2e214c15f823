"""The words that a page of the site shows, and its links, are found in its HTML."""

from pathlib import Path

from tests.documentation.shown import Shown

PAGE = """<html><body><nav><a href="other.html">Not the article</a></nav>
<article><svg><path d="M1"/></svg><h1 id="a">One<a href="#a">&para;</a></h1>
<p>two <code>th<span>ree</span></code>,<br>four - &amp; <img src="x"/> 5</p>
<table><tr><td>six</td><td>seven</td></tr></table>
<div class="doc doc-object"><div>A docstring <a href="api.html#b">b</a></div></div>
<p>eight</p></article></body></html>"""


def test_the_words_of_the_article_count_without_docstrings(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    shown = Shown(page)
    assert shown.words == 8
    assert shown.anchors == {"a"}
    assert shown.links == ["other.html", "#a", "api.html#b"]
