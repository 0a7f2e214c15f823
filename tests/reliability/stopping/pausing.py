"""A driver that stands still at one statement of a commit, for longer than the timeout.

Meanwhile another run of the query goes on, or nobody does.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random

from tests.exactly_once.query import Query
from tests.reliability.stopping.child import Children, Strike, children
from tests.reliability.stopping.copying import LONG_MS, PARTITIONS, Cluster
from tests.reliability.stopping.spark import RunEndedError, SparkRun, Table, go_on, unharmed

TIMEOUT_MS, PAUSE_SECONDS = 3_000, 5.0
_AT_ONCE = 6
_UNTIL = 3
_CALM_RUNS = 3


@dataclass(frozen=True, slots=True)
class Pause:
    """A stand-still at a statement of the commit of a micro-batch: the first of a run, or a later.

    `others` says whether another run goes on meanwhile.
    """

    statement: int
    batch_id: int
    others: bool


@dataclass(slots=True)
class Trial:
    """A query whose driver stands still once."""

    pause: Pause
    table: Table
    place: list[str] = field(default_factory=list)
    """Where the driver stood still; empty if its commit did not come to the statement."""

    @property
    def is_amid_ends(self) -> bool:
        """Whether it may have ended some transactions by then, and not others."""
        return any(each.startswith(("endings.end", "settling.")) for each in self.place)

    def make(self, some: Children, chance: Random) -> None:
        """Make the pause. Then run the query to its end."""
        table, pause = self.table, self.pause
        table.query.timeout_ms = TIMEOUT_MS
        run = SparkRun(table, some, unharmed, chance)
        with closing(run), suppress(RunEndedError):
            run.run(pause.batch_id)
            written = run.write(pause.batch_id)
            strike = Strike(pause.statement, pause_seconds=PAUSE_SECONDS)

            def meanwhile(place: list[str]) -> None:
                self.place = place
                if pause.others:
                    table.query.timeout_ms = LONG_MS
                    go_on(table, some, unharmed, chance, _UNTIL)

            run.commit(pause.batch_id, written, strike, meanwhile)
            table.log(pause.batch_id)
        table.query.timeout_ms = LONG_MS
        for _ in range(_CALM_RUNS):
            if table.next_batch <= _UNTIL:
                go_on(table, some, unharmed, chance, _UNTIL + 1)
        assert table.next_batch == _UNTIL + 1, f"the query does not go on: {table.ends}"


def paused(cluster: Cluster, pauses: Sequence[Pause], chance: Random) -> list[Trial]:
    """Make each of the pauses, in a query of its own, several at once."""
    trials = [Trial(each, _table(cluster)) for each in pauses]
    with children() as some, ThreadPoolExecutor(_AT_ONCE) as pool:
        made = [pool.submit(each.make, some, Random(chance.random())) for each in trials]
        for each in made:
            each.result()
    return trials


def statements(cluster: Cluster, batch_id: int) -> list[int]:
    """Return the numbers of the statements that the commit of a run's micro-batch takes."""
    with children() as some, closing(SparkRun(_table(cluster), some, unharmed, Random(0))) as run:
        run.run(batch_id)
        return run.commit(batch_id, run.write(batch_id)).statements


def _table(cluster: Cluster) -> Table:
    servers = cluster.kafka.bootstrap_servers
    return Table(Query(servers, cluster.topic, PARTITIONS, timeout_ms=LONG_MS))
