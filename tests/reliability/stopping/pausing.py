"""A driver that stands still at one statement of a commit, for longer than the timeout.

Meanwhile another run of the query goes on, or nobody does.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random

from tests.exactly_once.query import Query
from tests.reliability.stopping.child import Children, Strike
from tests.reliability.stopping.copying import LONG_MS, PARTITIONS, Cluster
from tests.reliability.stopping.spark import RunEndedError, SparkRun, Table, go_on, unharmed

TIMEOUTS_MS = 3_000, 6_000, 12_000, 24_000
"""A busy machine needs the longer ones to come to the statement in time."""
_PAUSE = 1.6
"""In timeouts."""
_AT_ONCE = 4
_TASKS = 3
_OTHERS_WRITE = 2
_CALM_RUNS = 3


@dataclass(frozen=True, slots=True)
class Pause:
    """A stand-still at a statement of the commit of a run's first or second micro-batch.

    `others` says whether another run goes on meanwhile.
    """

    statement: int
    place: int
    """0 for the first micro-batch, 1 for the second."""
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
        table = self.table
        for timeout_ms in TIMEOUTS_MS:
            table.query.timeout_ms = timeout_ms
            run = SparkRun(table, some, unharmed, chance)
            with closing(run), suppress(RunEndedError):
                self._stand_still(run, some, chance)
                break
            if self.place:
                break
        table.query.timeout_ms = LONG_MS
        until = table.next_batch + 2
        for _ in range(_CALM_RUNS):
            if table.next_batch < until:
                go_on(table, some, unharmed, chance, until)
        assert table.next_batch == until, f"the query does not go on: {table.ends}"

    def _stand_still(self, run: SparkRun, some: Children, chance: Random) -> None:
        table, pause = self.table, self.pause
        batch_id = table.next_batch + pause.place
        run.run(batch_id)
        pause_seconds = _PAUSE * table.query.timeout_ms / 1000

        def meanwhile(place: list[str]) -> None:
            self.place = place
            if pause.others:
                table.query.timeout_ms = LONG_MS
                go_on(table, some, unharmed, chance, batch_id + _OTHERS_WRITE)

        strike = Strike(pause.statement, pause_seconds=pause_seconds)
        run.commit(batch_id, run.write(batch_id), strike, meanwhile)
        table.log(batch_id)


def paused(
    cluster: Cluster, some: Children, pauses: Sequence[Pause], chance: Random
) -> list[Trial]:
    """Make each of the pauses, in a query of its own, several at once."""
    trials = [Trial(each, _table(cluster)) for each in pauses]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        made = [pool.submit(each.make, some, Random(chance.random())) for each in trials]
        for each in made:
            each.result()
    return trials


def statements(cluster: Cluster, some: Children, place: int) -> list[int]:
    """Return the numbers of the statements that the commit of a run's micro-batch takes.

    `place` is 0 for the run's first one, and 1 for the second.
    """
    with closing(SparkRun(_table(cluster), some, unharmed, Random(0))) as run:
        run.run(place)
        return run.commit(place, run.write(place)).statements


def _table(cluster: Cluster) -> Table:
    servers = cluster.kafka.bootstrap_servers
    query = Query(servers, cluster.topic, PARTITIONS, timeout_ms=LONG_MS)
    return Table(query, (_TASKS, _TASKS))  # As many take as many statements.
