"""The site builds without a warning, and a reader finds each subject within two clicks.

One click opens a section, or shows the results of the search. The next click opens the page.
"""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.spark.all_options import OPTIONS
from tests.documentation.pages import PROJECT
from tests.spark.test_conditions import CASES

pytestmark = pytest.mark.slow

SOUGHT = {
    "install on a cluster": ("On a cluster", "cluster.html"),
    "py-files": ("A zip", "cluster.html#a-zip"),
    "a first query": ("First query", "first-query.html"),
    "the Python that Spark starts": (
        "Python worker failed to connect back",
        "troubleshooting.html#python-worker-failed-to-connect-back",
    ),
    "an unknown format": ("DATA_SOURCE_NOT_FOUND", "troubleshooting.html#data_source_not_found"),
    "no rows": ("No rows", "troubleshooting.html#no-rows"),
    "the lag of a query": ("Groups and lag", "groups-and-lag.html"),
    "move from Spark's connector": ('Moving from format("kafka") and back', "moving.html"),
    "Confluent Cloud": ("Confluent Cloud", "confluent-cloud.html"),
    "MSK": ("Amazon MSK", "amazon-msk.html"),
    "Event Hubs": ("Azure Event Hubs", "event-hubs.html"),
    "a CA of one's own": ("Your own CA", "own-ca.html"),
    "Kerberos": ("Kerberos", "kerberos.html"),
    "a token endpoint": ("A token endpoint", "oauth.html#a-token-endpoint"),
    "a schema registry": ("Schema registry", "schema-registry.html"),
    "records that cannot be decoded": ("Bad records", "typed-values.html#bad-records"),
    "exactly once": ("Exactly once into Kafka", "exactly-once.html"),
    "an open transaction": ("Transactions, on call", "transactions.html"),
    "a backfill by time": ("By time", "backfills.html#by-time"),
    "tests with a broker": ("Tests on a real broker", "testing.html"),
    "how fast it is": ("Reading speed", "reading-speed.html"),
    "the settings for speed": ("Tuning", "tuning.html"),
    "the producer's methods": ("KafkaProducer", "producer.html"),
    "a notebook": ("A broker", "notebooks/quickstart.html#a-broker"),
    "a condition": ("Data loss", "conditions.html#data-loss"),
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


def test_the_search_finds_each_option(found: dict[str, Any]) -> None:
    text = " ".join(each["text"] for each in found.values())
    assert not [each.name for each in OPTIONS if each.name not in text]


def test_the_search_finds_each_condition(found: dict[str, Any]) -> None:
    text = " ".join(each["text"] for each in found.values())
    conditions = {error.condition for error, *_ in CASES} | {"KAFKA_NULL_TOPIC_IN_DATA"}
    assert not [each for each in conditions if each not in text]


def test_the_api_pages_have_the_docstrings(found: dict[str, Any]) -> None:
    text = " ".join(each["title"] for place, each in found.items() if place.startswith("api.html"))
    for name in ("KafkaConsumer", "poll", "KafkaProducer", "send_columns", "register"):
        assert name in text
