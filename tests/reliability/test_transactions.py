"""Transactions of several producers at random, some open. All readers read the same."""

from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.parity.scenario import OURS, PEER
from tests.reliability.conftest import Trial
from tests.reliability.readers import Row, Streams, by_confluent, by_spark
from tests.spark.source.test_transactions import Transactions
from tests.spark_session import Start
from tools.traffic import Events

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.peer,
    # tests/parity and tests/spark have transactions for every day.
    pytest.mark.reliability_full,
]

ISOLATION_LEVELS = ("read_committed", "read_uncommitted")
PRODUCERS, STEPS = 3, 25
# What is found open stays so while all is read, which takes its time on a slow machine.
LONG_MS = 600_000


class Traffic:
    """Producers with overlapping transactions.

    A transaction stays open until the producer's next turn.
    """

    def __init__(self, events: Events, chance: Random) -> None:
        self._events, self._chance = events, chance
        self._producers = [
            Transactions(events, str(number), transaction_timeout_ms=LONG_MS)
            for number in range(PRODUCERS)
        ]
        self._open: set[Transactions] = set()
        self._rows = 0
        self.ends = {"commit": 0, "abort": 0}

    @property
    def open(self) -> int:
        return len(self._open)

    def step(self) -> None:
        """Let a producer begin, continue or end a transaction, or write without one."""
        producer = self._chance.choice([*self._producers, None])
        if producer is None:
            self._events.write(self._some())
        elif producer not in self._open:
            self._open.add(producer)
            producer.open(*self._some())
        elif self._chance.random() < 0.3:
            producer.write(self._events.name, self._some())
        else:
            self._end(producer)

    def _end(self, producer: Transactions) -> None:
        how = self._chance.choice(["commit", "abort"])
        getattr(producer.producer, f"{how}_transaction")(60)
        self.ends[how] += 1
        self._open.remove(producer)

    def _some(self) -> list[str]:
        first, self._rows = self._rows, self._rows + self._chance.randint(1, 6)
        return [str(number) for number in range(first, self._rows)]


def test_overlapping_transactions_are_read_as_others_read_them(
    spark: SparkSession, events: Events, start: Start, trial: Trial
) -> None:
    events.create()
    chance = trial.chance
    traffic = Traffic(events, chance)
    streams = [
        Streams(spark, levelled(events, level, maxOffsetsPerTrigger=limit), start)
        for level in ISOLATION_LEVELS
        for limit in (3, 50)
    ]
    compared = differ = left_open = 0
    for _ in range(trial.rounds):
        for _ in range(STEPS):
            traffic.step()
        left_open += traffic.open
        found = [each.differ() for each in streams]
        found += [not same(spark, events, level, chance) for level in ISOLATION_LEVELS]
        compared, differ = compared + len(found), differ + sum(found)
    trial.report(
        "8",
        f"{traffic.ends['commit']} transactions committed and {traffic.ends['abort']} aborted by "
        f"{PRODUCERS} producers, {left_open} found open; {compared} reads compared",
        f"differences from the peer and from confluent-kafka: {differ}",
    )
    assert differ == 0


def levelled(events: Events, level: str, **more: object) -> dict[str, object]:
    return events.options(**more) | {"kafka.isolation.level": level}


def same(spark: SparkSession, events: Events, level: str, chance: Random) -> bool:
    """Whether all readers give the same rows, of everything and of a range."""
    whole = by_confluent(events, level)
    end = whole[-1][1] + 1 if whole else 0
    first, last = sorted(chance.randint(0, end) for _ in range(2))
    part = [row for row in whole if first <= row[1] < last]
    bounds = {
        "startingOffsets": events.offsets(first),
        "endingOffsets": events.offsets(last),
    }
    return all(
        by_spark(spark, levelled(events, level, **more), name) == expected
        for name in (OURS, PEER)
        for more, expected in _questions(whole, part, bounds)
    )


def _questions(
    whole: list[Row], part: list[Row], bounds: dict[str, str]
) -> list[tuple[dict[str, str], list[Row]]]:
    return [({}, whole), (bounds, part)]
