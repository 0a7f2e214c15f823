"""A query that writes micro-batches under faults that a seed draws."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import Found, found_by_confluent
from tests.exactly_once.query import Query
from tests.reliability.stopping.child import Children, Strike, children
from tests.reliability.stopping.process import ABORT, COMMIT, WRITE
from tests.reliability.stopping.spark import Table, go_on, unharmed
from tools.reliability.leaders import make_whole
from tools.reliability.writing.gate import Gate

SHORT_MS, LONG_MS = 4_000, 60_000
PARTITIONS = 4
# After so many runs for each micro-batch there are no more faults, and transactions have time.
_FAULTY_RUNS = 4
_CALM_RUNS = 4
_SKIPPED = "these partitions are likely deleted already and hence can be skipped"
_ODDS = MappingProxyType(
    {
        COMMIT: 0.35,
        ABORT: 0.1,
        WRITE: 0.05,
        "new driver": 0.1,
        "slow": 0.1,
        "speculation": 0.05,
        "log": 0.2,
    }
)
_STATEMENTS = MappingProxyType({COMMIT: 600, ABORT: 300, WRITE: 200})
"""About how many an order takes. A strike at a later one does not happen."""
_LATEST_SECONDS = 0.4
_DUELS, _TROUBLES = 0.35, 0.3
_DUEL_WITHIN_SECONDS = 2.0
_TROUBLE_WITHIN_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers behind gates, with a topic."""

    kafka: LocalKafka
    gates: Sequence[Gate]
    topic: str
    kind: str

    @property
    def direct(self) -> str:
        """The brokers' addresses without the gates."""
        return self.kafka.bootstrap_servers_of("INTERNAL")

    def found(self) -> Found:
        """Return the rows that confluent-kafka reads."""
        return found_by_confluent(self.direct, self.topic, PARTITIONS)

    def skipped(self) -> int:
        """Return how often a coordinator has written no marker to a partition without a leader.

        It takes the partition for deleted, and the transaction holds readers up for ever. So did
        Kafka 4.3.1 after its only broker was killed and started again.
        """
        return sum(each.log.read_text().count(_SKIPPED) for each in self.kafka.brokers)


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of processes. Their times are around the timeout of transactions."""

    chance: Random
    pause_seconds: float
    """About how long a process stands still."""

    def draw(self, what: str) -> Strike | None:
        """Draw the strike for an order of this kind."""
        chance = self.chance
        if chance.random() >= _ODDS[what]:
            return None
        pause_seconds = chance.uniform(0.2, 1.6) * self.pause_seconds
        if what not in _STATEMENTS:
            return Strike(after_seconds=pause_seconds)
        pause = pause_seconds if chance.random() < 0.5 else None
        if chance.random() < 0.5:
            return Strike(chance.randrange(1, _STATEMENTS[what]), pause_seconds=pause)
        return Strike(after_seconds=chance.uniform(0, _LATEST_SECONDS), pause_seconds=pause)


def copied(cluster: Cluster, chance: Random, batches: int) -> Table:
    """Write so many micro-batches under faults, and one more without. Return what came of it."""
    timeout_ms = chance.choice([SHORT_MS, SHORT_MS, LONG_MS])
    query = Query(cluster.kafka.bootstrap_servers, cluster.topic, PARTITIONS, timeout_ms=timeout_ms)
    table = Table(query, about=f"timeout {timeout_ms} ms", is_patient=timeout_ms == LONG_MS)
    with children() as some:
        for _ in range(_FAULTY_RUNS * batches):
            if table.next_batch == batches:
                break
            with _trouble(cluster, chance):
                _fight(table, some, chance, batches)
    make_whole(cluster.kafka, cluster.topic)
    query.timeout_ms = LONG_MS
    with children() as some:
        for _ in range(_CALM_RUNS):
            if table.next_batch <= batches:
                go_on(table, some, unharmed, chance, batches + 1)
    assert table.next_batch == batches + 1, f"the query does not go on: {table.ends}"
    return table


def _fight(table: Table, some: Children, chance: Random, batches: int) -> None:
    """Run the query, perhaps twice at once, for some micro-batches."""
    until = min(batches, table.next_batch + chance.randint(1, 4))
    delays = [0.0]
    if chance.random() < _DUELS:
        delays.append(chance.uniform(0, _DUEL_WITHIN_SECONDS))
    failed: list[BaseException] = []

    def run(delay_seconds: float, own: Random) -> None:
        time.sleep(delay_seconds)
        faults = Faults(own, min(SHORT_MS, table.query.timeout_ms) / 1000)
        try:
            go_on(table, some, faults.draw, own, until)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [
        threading.Thread(target=run, args=[each, Random(chance.random())]) for each in delays
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failed:
        raise failed[0]


@contextmanager
def _trouble(cluster: Cluster, chance: Random) -> Iterator[None]:
    """Perhaps kill, stop or cut off a broker meanwhile, for a time around the timeout."""
    if chance.random() >= _TROUBLES:
        yield
        return
    place = chance.randrange(len(cluster.gates))
    # The only broker must not be killed: see `Cluster.skipped`.
    manner = chance.choice(["pause", "cut"] + ["kill"] * (len(cluster.gates) > 1))
    after_seconds = chance.uniform(0, _TROUBLE_WITHIN_SECONDS)
    for_seconds = chance.uniform(0.2, 1.6) * SHORT_MS / 1000

    def strike() -> None:
        broker = cluster.kafka.brokers[place]
        time.sleep(after_seconds)
        if manner == "cut":
            cluster.gates[place].hold(for_seconds)
        elif manner == "pause":
            broker.pause()
        else:
            broker.kill()
        time.sleep(for_seconds)
        if manner == "pause":
            broker.resume()
        elif manner == "kill":
            broker.start()

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        make_whole(cluster.kafka, cluster.topic)
