"""A driver killed again and again: on the same checkpoint, nothing is lost and nothing doubled."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path

import pytest

from tests.spark.driver import Orders
from tests.spark.traffic import TIMEOUT_SECONDS, Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

KILLS = 10
KILLED = -signal.SIGKILL
STATUS = {
    "before_it_is_written": (KILLED,),
    "after_it_is_written": (KILLED,),
    "at_any_time": (KILLED, 0),
}


class Driver:
    """A driver in a process group of its own, that gets ready while another one runs."""

    def __init__(self, orders: Orders) -> None:
        self.ends = orders.ends
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.driver", orders.to_json()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def run(self) -> int:
        """Its exit status, or minus the signal that ended it."""
        self._process.communicate(b"go\n", TIMEOUT_SECONDS)
        return self._process.returncode

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()


def write(events: Events, attempt: int) -> list[tuple[int, str]]:
    """Thirty rows to each partition; halfway the topic grows."""
    if attempt == KILLS // 2:
        events.grow(3)
    partitions = range(3 if attempt >= KILLS // 2 else 2)
    names = [f"{attempt}:{number}" for number in range(30)]
    for partition in partitions:
        events.write(names, partition)
    return [(partition, name) for partition in partitions for name in names]


def test_a_driver_killed_ten_times(events: Events, tmp_path: Path) -> None:
    events.create(2)
    given = events.options(maxOffsetsPerTrigger=20) | {"kafka.group.id": events.name}
    options = {name: str(value) for name, value in given.items()}
    orders = [
        Orders(options, str(tmp_path), attempt, ends)
        for attempt, ends in zip(range(KILLS), cycle(STATUS), strict=False)
    ]
    orders.append(Orders(options, str(tmp_path), KILLS))
    expected = []
    with ExitStack() as drivers:
        driver = drivers.enter_context(closing(Driver(orders[0])))
        for following in orders[1:]:
            expected += write(events, following.attempt - 1)
            ready = drivers.enter_context(closing(Driver(following)))
            assert driver.run() in STATUS[driver.ends]
            driver = ready
        assert driver.run() == 0
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
