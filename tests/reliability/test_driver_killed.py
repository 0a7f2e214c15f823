"""Drivers are killed on the same checkpoint again and again. No row is lost or doubled."""

import json
import signal
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pyspark
import pytest

from spark_kafka_source.spark.source.admission import HAS_ADMISSION_CONTROL
from tests.reliability.conftest import Trial
from tools.reliability.child import TIMEOUT_SECONDS, SparkChild
from tools.reliability.driver import Orders
from tools.traffic import Events, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

SEVERAL_BATCHES = pytest.mark.skipif(
    not HAS_ADMISSION_CONTROL, reason="Spark before 4.2 makes one micro-batch of a run"
)
MODULE = "tools.reliability.driver"
# Thirty rows to each of two partitions, twenty in a micro-batch: three, more where others died.
LATEST_DEATH_SECONDS = 5

Row = tuple[int, int, str]


def some_death(orders: Orders, chance: Random) -> Orders:
    """Return the orders with a death: at any time, or next to the write of a micro-batch."""
    after = replace(orders, dies_after_seconds=chance.uniform(0, LATEST_DEATH_SECONDS))
    written = replace(orders, dies_after_batch=chance.randint(1, 3))
    unwritten = replace(orders, dies_before_batch=chance.randint(1, 3))
    return chance.choice([after, written, written, unwritten])


class Rows:
    """The rows written between the deaths, and the partitions."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.written: Counter[tuple[int, str]] = Counter()
        events.create(2)

    def write(self, attempt: int) -> None:
        """Write thirty rows to each partition."""
        names = [f"{attempt}:{number}" for number in range(30)]
        for partition in range(self.events.partitions):
            self.events.write(names, partition)
            self.written.update((partition, name) for name in names)


@pytest.mark.parametrize(
    "available_now",
    [
        pytest.param(True, marks=SEVERAL_BATCHES),
        False,
    ],
    ids=["available now", "default trigger"],
)
def test_a_driver_killed_again_and_again(
    events: Events, tmp_path: Path, trial: Trial, available_now: bool
) -> None:
    rows = Rows(events)
    given = events.options(maxOffsetsPerTrigger=20) | {"kafka.group.id": events.name}
    texts = {name: str(value) for name, value in given.items()}
    orders = Orders(texts, str(tmp_path), attempt=0, available_now=available_now)
    kills = 0
    with ExitStack() as drivers:
        driver = drivers.enter_context(closing(SparkChild(MODULE)))
        while kills < trial.rounds:
            assert orders.attempt < 3 * trial.rounds, "drivers end before they are killed"
            if kills == trial.rounds // 2 and events.partitions == 2:
                events.grow(3)
            rows.write(orders.attempt)
            ready = drivers.enter_context(closing(SparkChild(MODULE)))
            status = driver.run(some_death(orders, trial.chance).to_json())
            assert status in (-signal.SIGKILL, 0)
            kills += status != 0
            wait_until(lambda: not driver.there())  # noqa: B023 - called now
            driver, orders = ready, replace(orders, attempt=orders.attempt + 1)
        # The killed drivers have left more rows the more they are.
        patience_seconds = TIMEOUT_SECONDS + 10 * trial.rounds
        assert driver.run(orders.to_json(), patience_seconds) == 0
    attempts = Attempts(tmp_path / "rows")
    found = Counter((partition, value) for partition, _, value in attempts.rows)
    lost, doubled = (rows.written - found).total(), (found - rows.written).total()
    trial.report(
        "2",
        f"{kills} drivers killed by SIGKILL at random, Spark {pyspark.__version__}, "
        f"{'AvailableNow' if available_now else 'default trigger'}; "
        f"{attempts.again} micro-batches tried again",
        f"batches that differ: {attempts.differ}; rows lost: {lost}; doubled: {doubled}",
    )
    assert (attempts.differ, lost, doubled) == (0, 0, 0)


class Attempts:
    """The files of all attempts. All attempts at a micro-batch must have the same rows."""

    def __init__(self, directory: Path) -> None:
        by_batch: dict[str, list[str]] = {}
        for path in directory.glob("*.*"):
            by_batch.setdefault(path.stem, []).append(path.read_text())
        self.again = sum(len(texts) > 1 for texts in by_batch.values())
        self.differ = sum(len(set(texts)) > 1 for texts in by_batch.values())
        self.rows: list[Row] = [
            tuple(row) for texts in by_batch.values() for row in json.loads(texts[0])
        ]
