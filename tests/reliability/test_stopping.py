"""Drivers and workers die or stand still at any moment and at any statement. Rows count once.

`make reliability` does it on all kinds of brokers. Rows may be lost only with an error that names
them, and only where transactions time out: see "What remains" in
`docs/contributors/exactly-once-protocol.md`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest

from spark_kafka_source.testing.jars import KAFKA_VERSION
from tests.exactly_once.conftest import PROPERTIES
from tests.exactly_once.judge import Found, Verdict
from tests.matrix.conftest import FORMER_KAFKA, OLDEST_KAFKA
from tests.reliability.conftest import Trial
from tests.reliability.stopping.child import children
from tests.reliability.stopping.copying import PARTITIONS, Cluster, copied
from tests.reliability.stopping.pausing import Pause, paused, statements
from tests.reliability.stopping.spark import Table
from tools.reliability.writing.cluster import behind_gates

pytestmark = [pytest.mark.kafka, pytest.mark.reliability_full, pytest.mark.timeout(0)]

BATCHES, PAUSES = 6, 1
ALL = 50
"""From so many rounds on, a driver stands still at each statement."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cluster."""

    brokers: int = 1
    version: str = KAFKA_VERSION
    level: int | None = None
    """The cluster's `transaction.version`; None for the default."""

    def __str__(self) -> str:
        level = "" if self.level is None else f"-level-{self.level}"
        return f"{self.brokers}-of-{self.version}{level}"


KINDS = (
    Kind(),
    Kind(level=1),
    Kind(version=OLDEST_KAFKA),
    Kind(version=FORMER_KAFKA),
    Kind(3),
    Kind(3, level=1),
)


@pytest.fixture(params=KINDS, ids=str, scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Brokers behind gates."""
    kind: Kind = request.param
    properties = dict(PROPERTIES)
    if kind.brokers == 1:
        # It must lead its partitions also after it has stood still: see `Cluster.skipped`.
        properties["broker.session.timeout.ms"] = "60000"
    brokers = behind_gates(Random(0), kind.brokers, version=kind.version, properties=properties)
    with brokers as (kafka, gates):
        if kind.level is not None:
            level = f"transaction.version={kind.level}"
            kafka.tool("features", "downgrade", "--feature", level)
        yield Cluster(kafka, gates, "", str(kind))


@pytest.fixture
def own(cluster: Cluster, topic: str) -> Cluster:
    """The brokers, with a topic of the test's own."""
    cluster.kafka.create_topic(topic, PARTITIONS)
    return replace(cluster, topic=topic)


def test_faults_from_a_seed(own: Cluster, trial: Trial) -> None:
    tables = []
    for _ in range(trial.rounds):
        tables.append(copied(own, trial.chance, BATCHES))
        _tell(tables[-1], own.found())
    _judge(trial, own, tables, f"{trial.rounds} queries of {BATCHES} micro-batches")


def test_a_driver_that_stands_still_at_a_statement(own: Cluster, trial: Trial) -> None:
    pauses = []
    with children() as some:
        for place in (0, 1):
            chosen = statements(own, some, place)
            if trial.rounds < ALL:
                chosen = trial.chance.sample(chosen, min(PAUSES * trial.rounds, len(chosen)))
            pauses += [Pause(each, place, trial.chance.random() < 0.5) for each in chosen]
        trials = paused(own, some, pauses, trial.chance)
    found = own.found()
    for each in trials:
        print(each.pause, each.place[:2], end=" ")
        _tell(each.table, found)
    _judge(trial, own, [each.table for each in trials], f"{len(pauses)} stand-stills")
    assert all(each.is_amid_ends for each in trials if each.table.given_up)
    assert sum(bool(each.place) for each in trials) >= len(trials) // 2, "many are not reached"


def _tell(table: Table, found: Found) -> None:
    given_up = f"named as lost: {len(table.given_up)}"
    verdict = table.verdict(found)
    print(table.about, verdict, given_up, dict(table.ends), *table.texts, sep="; ", flush=True)


def _judge(trial: Trial, own: Cluster, tables: Sequence[Table], done: str) -> None:
    """Judge all queries on a topic."""
    found = own.found()
    verdicts = [each.verdict(found) for each in tables]
    lost = sum(each.lost for each in verdicts)
    doubled = sum(each.doubled for each in verdicts)
    given_up = sum(len(each.given_up) for each in tables)
    verdict = Verdict(lost, doubled, found.held_up)
    trial.report(
        "stopping",
        f"{done} on {own.kind}",
        f"lost: {lost}; doubled: {doubled}; partitions held up in the end: {found.held_up}; "
        f"rows that an error named as lost: {given_up}",
    )
    assert verdict.is_good, f"{verdict}; markers that Kafka has skipped: {own.skipped()}"
