"""A broker with all secured listeners, and a topic to read, for all tests of this package."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer, Security
from tests.security.options import USERS
from tests.security.rows import PARTITIONS, ROWS, ROWS_TOPIC


@pytest.fixture(scope="package")
def secured() -> Iterator[LocalKafka]:
    """Run one broker for all tests here. A resource without an ACL is open to everyone."""
    with LocalKafka(security=Security(USERS)) as kafka:
        yield kafka


@pytest.fixture(scope="package")
def thousand(secured: LocalKafka) -> str:
    """Return a topic with the thousand rows `ROWS` in four partitions. Tests only read it."""
    secured.create_topic(ROWS_TOPIC, partitions=PARTITIONS)
    with Producer(secured.bootstrap_servers) as producer:
        for partition in range(PARTITIONS):
            records = [Record(value=value) for value in ROWS[partition::PARTITIONS]]
            producer.send(ROWS_TOPIC, partition, records)
    return ROWS_TOPIC


# -- the table of diagnoses ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """The error of a set-up that cannot work."""

    setup: str
    error: str
    text: str
    seconds: float


_OUTCOMES = pytest.StashKey[list[Outcome]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--diagnosis-table", type=Path, help="where to write what is said of set-ups")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_OUTCOMES] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    path: Path | None = session.config.getoption("--diagnosis-table", default=None)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        outcomes = session.config.stash[_OUTCOMES]
        path.write_text(render(outcomes))


@pytest.fixture
def outcomes(request: pytest.FixtureRequest) -> list[Outcome]:
    """Return the rows of the table."""
    return request.config.stash[_OUTCOMES]


def render(outcomes: Iterable[Outcome]) -> str:
    """Return the table as Markdown. Addresses keep only the parts that are equal in all runs."""
    head = ["| set-up | error | what it says | seconds |", "|---|---|---|---|"]
    rows = [
        (each.setup, f"`{each.error}`", _shown(each.text), f"{each.seconds:.1f}")
        for each in outcomes
    ]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _shown(text: str) -> str:
    text = re.sub(r"127\.0\.0\.1:[0-9]+", "broker:9093", text.splitlines()[0])
    text = re.sub(r"'/[^']*/", "'/etc/kafka/", text)
    return text.replace("|", r"\|")
