"""What writing costs whom: the time that passed, and the processor time of client and broker."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

import psutil

from spark_kafka_source.testing import LocalKafka
from tests.benchmarks.interleaved import Ratio, interleaved


class Cost(NamedTuple):
    """Of one run, in seconds."""

    passed: float
    client: float
    """Processor time of all processes that write. So is that of the broker."""
    broker: float

    @property
    def both(self) -> float:
        """Processor time of the client and the broker."""
        return self.client + self.broker


Costs = Mapping[str, Sequence[Cost]]
"""What each run cost, by the name of the way; the nth runs of all were one after the other."""

Way = Callable[[str], float | None]
"""Writes to a topic of this name. One whose client is another process returns its time."""


def metered(
    ways: Mapping[str, Way],
    runs: int,
    *,
    topics: Callable[[str], AbstractContextManager[str]],
    client: Callable[[], float],
    kafka: LocalKafka,
) -> Costs:
    """Runs all ways in turn, each time to a topic that `topics` has for it.

    What is done with a topic before and after is in no cost. `client` is the processor time that
    the client's processes have used so far.
    """
    broker = psutil.Process(kafka.broker(1).pid)
    costs: dict[str, list[Cost]] = {name: [] for name in ways}

    def run(name: str) -> float:
        with topics(name) as topic:
            before = time.perf_counter(), client(), seconds(broker)
            own = ways[name](topic)
            after = time.perf_counter(), client(), seconds(broker)
            passed, used, of_broker = (b - a for a, b in zip(before, after, strict=True))
        costs[name].append(Cost(passed, used if own is None else own, of_broker))
        return passed

    interleaved({name: partial(run, name) for name in ways}, runs)
    return {name: each[1:] for name, each in costs.items()}  # The first turn is not counted.


def ratio(costs: Costs, over: str, under: str, measure: str) -> Ratio:
    """How many times as much `over` costs as `under`, by one of the measures of `Cost`."""
    by_way = {name: [getattr(each, measure) for each in costs[name]] for name in (over, under)}
    return Ratio.of(by_way, over, under)


def nanoseconds(costs: Sequence[Cost], rows: int, measure: str) -> str:
    """A row's share, the median of all runs."""
    share = statistics.median(getattr(each, measure) for each in costs) / rows * 1e9
    return f"{share:,.0f}"


def seconds(process: psutil.Process) -> float:
    """The processor time that a process has used so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def with_ended(process: psutil.Process) -> float:
    """The same with that of its children that have ended."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # Its parent has counted it.
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
