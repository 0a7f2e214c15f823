"""The site builds without a warning, and a reader finds each subject within two clicks.

One click opens a section, or shows the results of the search. The next click opens the page.
"""

import html
import json
import os
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.consumer import consumer_config
from spark_kafka_source.producer import producer_config
from spark_kafka_source.spark.all_options import OPTIONS
from tests.documentation.pages import PROJECT, UNNAMED_ERRORS, errors, in_nav
from tests.documentation.shown import Shown, words
from tests.spark.test_conditions import CASES

pytestmark = pytest.mark.slow

SOUGHT = {
    "install on a cluster": ("On a cluster", "platforms.html#on-a-cluster"),
    "py-files": ("A zip", "platforms.html#a-zip"),
    "a first query": ("First query", "first-query.html"),
    "the Python that Spark starts": (
        "Python worker failed to connect back",
        "troubleshooting.html#python-worker-failed-to-connect-back",
    ),
    "an unknown format": ("DATA_SOURCE_NOT_FOUND", "troubleshooting.html#data_source_not_found"),
    "no rows": ("No rows", "troubleshooting.html#no-rows"),
    "the lag of a query": ("Groups and lag", "groups-and-lag.html"),
    "move from Spark's connector": ('Moving from format("kafka") and back', "moving.html"),
    "a comparison with others": ("Which tool", "which-tool.html"),
    "the way back": ("Back to kafka", "moving.html#back-to-kafka"),
    "the future of the project": (
        "What if the project stops?",
        "faq.html#what-if-the-project-stops",
    ),
    "a notebook of one's own": ("In a notebook", "first-query.html#in-a-notebook"),
    "Confluent Cloud": ("Confluent Cloud", "security.html#confluent-cloud"),
    "MSK": ("Amazon MSK", "security.html#amazon-msk"),
    "Event Hubs": ("Azure Event Hubs", "security.html#azure-event-hubs"),
    "a CA of one's own": ("Your own CA", "security.html#your-own-ca"),
    "Kerberos": ("Kerberos", "security.html#kerberos"),
    "a token endpoint": ("A token endpoint", "security.html#a-token-endpoint"),
    "a schema registry": ("Schema registry", "schema-registry.html"),
    "records that cannot be decoded": ("Bad records", "typed-values.html#bad-records"),
    "dead letters": ("Dead letters", "typed-values.html#dead-letters"),
    "the types of Avro": ("Avro", "formats.html#avro"),
    "the types of Protobuf": ("Protobuf", "formats.html#protobuf"),
    "a topic into pandas": (
        "A topic into pandas, Polars, DuckDB",
        "consumer.html#a-topic-into-pandas-polars-duckdb",
    ),
    "a consumer for asyncio": ("asyncio", "consumer.html#asyncio"),
    "exactly once": ("Exactly once into Kafka", "exactly-once.html"),
    "an open transaction": ("On call", "exactly-once.html#on-call"),
    "a backfill by time": ("A batch, by time", "reading.html#a-batch-by-time"),
    "tests with a broker": ("Testing your queries", "testing.html"),
    "the settings for speed": ("Tuning", "tuning.html"),
    "the producer's methods": ("KafkaProducer", "producer.html"),
    "a notebook": ("A broker", "notebooks/quickstart.html#a-broker"),
    "a condition": ("Data loss", "errors.html#data-loss"),
    "the memory of a task": ("Memory", "tuning.html#memory"),
}
"""Subjects that a reader looks for, each with the title and the place of its text."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Site, built as by `make docs`, with warnings as errors."""
    site = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        check=False,
        capture_output=True,
        cwd=PROJECT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return site


@pytest.fixture(scope="module")
def shown(site: Path) -> dict[str, Shown]:
    """Pages of the site's navigation, by their place."""
    places = [page.replace(".md", ".html") for page in in_nav()]
    return {place: Shown(site / place) for place in places}


@pytest.fixture(scope="module")
def found(site: Path) -> dict[str, Any]:
    """Entries of the site's search index, by their place."""
    index = json.loads((site / "search" / "search_index.json").read_text())
    return {each["location"]: each for each in index["docs"]}


@pytest.mark.parametrize(("title", "place"), SOUGHT.values(), ids=SOUGHT)
def test_what_one_looks_for_is_two_clicks_away(
    site: Path, found: dict[str, Any], title: str, place: str
) -> None:
    assert _text(found[place]["title"]) == title
    home = (site / "index.html").read_text()
    assert f'href="{place.partition("#")[0]}"' in home


def _text(title: str) -> str:
    return html.unescape(re.sub("<[^>]+>", "", title))


def test_the_site_is_read_by_one_person(shown: dict[str, Shown]) -> None:
    """The docstrings of the page on the API do not count: nobody reads them in a row.

    Of a notebook the Markdown counts, not its code and its output.
    """
    counted = {
        place: _words_of_notebook(place) if place.startswith("notebooks/") else page.words
        for place, page in shown.items()
    }
    assert len(counted) < 40
    assert sum(counted.values()) < 35_000, counted


def _words_of_notebook(place: str) -> int:
    notebook = json.loads((PROJECT / place.replace(".html", ".ipynb")).read_text())
    cells = (each for each in notebook["cells"] if each["cell_type"] == "markdown")
    return sum(words("".join(each["source"])) for each in cells)


def test_each_page_is_one_click_from_the_start_page(shown: dict[str, Shown]) -> None:
    """Or two, where the first opens a section."""
    linked = {link.partition("#")[0] for link in shown["index.html"].links} | {"index.html"}
    assert set(shown) - linked == set()


def test_no_link_of_a_page_leads_nowhere(site: Path, shown: dict[str, Shown]) -> None:
    broken = [
        (place, link)
        for place, page in shown.items()
        for link in page.links
        if not _leads_somewhere(site, site / place, link, shown)
    ]
    assert broken == []


def _leads_somewhere(site: Path, page: Path, link: str, shown: dict[str, Shown]) -> bool:
    address = urllib.parse.urlsplit(link)
    if address.scheme:
        return True
    target = (page.parent / address.path).resolve() if address.path else page
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return False
    there = shown.get(target.relative_to(site).as_posix())
    anchor = urllib.parse.unquote(address.fragment)
    return not anchor or there is None or anchor in there.anchors


_ASKED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]+"""
    r"""|<link\b(?![^>]*rel="?canonical)[^>]*\bhref="(?:https?:)?//[^"]+"""
    r"""|url\(["']?(?:https?:)?//[^)]+"""
)


def test_no_page_asks_another_host(site: Path) -> None:
    """Neither for a font or a picture, nor for a script or a style."""
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert {found for file in files for found in _ASKED.findall(file.read_text())} == set()


def test_the_start_page_has_buttons_and_icons(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert re.search(r'<a class="md-button[^>]* href="first-query.html">', page)
    assert '<span class="twemoji">' in page
    assert "site:" not in page


def test_the_changes_are_those_of_the_newest_version(found: dict[str, Any]) -> None:
    first, *others = re.findall(r"^## (.+)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    on_page = [each["title"] for place, each in found.items() if place.startswith("changes.html#")]
    assert on_page[:1] == [first]
    assert set(others).isdisjoint(on_page)
    assert others[0].partition(",")[0] in " ".join(
        each["text"] for place, each in found.items() if place.startswith("changes.html")
    )


@pytest.fixture(scope="module")
def sought(found: dict[str, Any]) -> str:
    """Return the text that the search looks at, without that of the page on the API."""
    return " ".join(
        f"{each['title']} {each['text']}"
        for place, each in found.items()
        if not place.startswith("api.html")
    )


def test_the_search_finds_each_option(sought: str) -> None:
    assert not [name for name in OPTIONS if name not in sought]


def test_the_search_finds_each_setting_of_clients(sought: str) -> None:
    settings = {**consumer_config.VOCABULARY.known, **producer_config.VOCABULARY.known}
    missing = [name for name in settings if name not in sought and _argument(name) not in sought]
    assert missing == []


def _argument(setting: str) -> str:
    return setting.removeprefix("kafka.").replace(".", "_")


def test_the_search_finds_each_condition(sought: str) -> None:
    conditions = {error.condition for error, *_ in CASES} | {"KAFKA_NULL_TOPIC_IN_DATA"}
    assert not [each for each in conditions if each not in sought]


def test_the_search_finds_each_error(found: dict[str, Any]) -> None:
    text = " ".join(
        each["text"] for place, each in found.items() if place.startswith("errors.html")
    )
    assert {name for name in errors() if not re.search(rf"\b{name}\b", text)} == UNNAMED_ERRORS


def test_the_api_pages_have_the_docstrings(found: dict[str, Any]) -> None:
    text = " ".join(each["title"] for place, each in found.items() if place.startswith("api.html"))
    for name in ("KafkaConsumer", "poll", "KafkaProducer", "send_columns", "register"):
        assert name in text
