"""A driver killed again and again: on the same checkpoint, nothing is lost and nothing doubled."""

import json
import os
import signal
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest

from tests.spark.driver import Orders
from tests.spark.traffic import TIMEOUT_SECONDS, Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

KILLS = 10
ENDS = ("before_it_is_written", "after_it_is_written", "at_any_time")


def drive(orders: Orders) -> int:
    """Runs a driver in a process group of its own; its exit status, or minus the signal."""
    command = [sys.executable, "-m", "tests.spark.driver", orders.to_json()]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    ) as driver:
        try:
            return driver.wait(TIMEOUT_SECONDS)
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)


def test_a_driver_killed_ten_times(events: Events, tmp_path: Path) -> None:
    events.create(2)
    options = {
        name: str(value) for name, value in events.options(maxOffsetsPerTrigger=20).items()
    } | {"kafka.group.id": events.name}
    expected = []
    for attempt, ends in zip(range(KILLS), cycle(ENDS), strict=False):
        if attempt == KILLS // 2:
            events.grow(3)
        for partition in range(3 if attempt >= KILLS // 2 else 2):
            names = [f"{attempt}:{number}" for number in range(30)]
            events.write(names, partition)
            expected += [(partition, name) for name in names]
        status = drive(Orders(options, str(tmp_path), attempt, ends))
        assert status in ((-signal.SIGKILL,) if ends != "at_any_time" else (-signal.SIGKILL, 0))
    assert drive(Orders(options, str(tmp_path), KILLS)) == 0
    rows = finished(tmp_path / "rows")
    assert len({(partition, offset) for partition, offset, _ in rows}) == len(rows)
    assert sorted((partition, value) for partition, _, value in rows) == sorted(expected)


def finished(directory: Path) -> list[tuple[int, int, str]]:
    """The rows of all micro-batches, each once; all attempts at one must have the same."""
    by_batch: dict[str, str] = {}
    for path in directory.glob("*.*"):
        text = path.read_text()
        assert by_batch.setdefault(path.stem, text) == text
    assert len(list(directory.iterdir())) > len(by_batch)  # some were tried again
    return [tuple(row) for text in by_batch.values() for row in json.loads(text)]
