"""The page of what came of faults in queries that write to Kafka."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.reliability.sink.judge import Verdict

_HEAD = """\
# Faults in queries that write to Kafka

A query copies a topic, three partitions to three, some 120 rows in a micro-batch. In each round it
gets more to copy, and the fault is made. It is started again on the same checkpoint until all is
copied. Then librdkafka reads the copy with `read_committed`: what it does not see is lost, what it
sees more than once is doubled. Transactions that are open after that are left open.

Made by `python -m tests.reliability.sink --rounds N --page ...`, with one broker.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """Of so many rounds."""

    guarantee: str
    fault: str
    rounds: int
    faults: int
    """How many drivers were killed, stopped or failed; of tasks that did there is no count."""
    rows: int
    verdict: Verdict

    @property
    def cells(self) -> tuple[str, ...]:
        found = self.verdict
        return (
            self.guarantee,
            self.fault,
            *map(
                str,
                (self.rounds, self.faults, self.rows, found.lost, found.doubled, found.left_open),
            ),
        )


def render(rows: Sequence[Row], seed: int) -> str:
    """As Markdown."""
    head = ("written", "fault", "rounds", "drivers ended", "rows", "lost", "doubled", "left open")
    lines = [head, tuple("---" for _ in head), *(each.cells for each in rows)]
    table = "\n".join(f"| {' | '.join(each)} |" for each in lines)
    return f"{_HEAD}\nSeed {seed}.\n\n{table}\n"
