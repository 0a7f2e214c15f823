"""Costs of writing: the elapsed time, and the processor time of client and broker."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

import psutil

from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.interleaved import Ratio, interleaved


class Cost(NamedTuple):
    """Cost of one run, in seconds."""

    passed: float
    client: float
    """Processor time of all writing processes. `broker` is the broker's processor time."""
    broker: float

    @property
    def both(self) -> float:
        """Processor time of the client and the broker."""
        return self.client + self.broker


Costs = Mapping[str, Sequence[Cost]]
"""Cost of each run, by the name of the way. The nth runs of all ways followed each other."""

Way = Callable[[str], float | None]
"""Function that writes to the named topic. With a client in another process it returns the time."""


def metered(
    ways: Mapping[str, Way],
    runs: int,
    *,
    topics: Callable[[str], AbstractContextManager[str]],
    client: Callable[[], float],
    kafka: LocalKafka,
) -> Costs:
    """Run all ways in turn. Each run writes to a topic from `topics`.

    The costs exclude the work on a topic before and after a run. `client` returns the processor
    time of the client's processes so far.
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
    return {name: each[1:] for name, each in costs.items()}  # The first turn does not count.


def ratio(costs: Costs, over: str, under: str, measure: str) -> Ratio:
    """Return how many times as much `over` costs as `under`, in one measure of `Cost`."""
    by_way = {name: [getattr(each, measure) for each in costs[name]] for name in (over, under)}
    return Ratio.of(by_way, over, under)


def nanoseconds(costs: Sequence[Cost], rows: int, measure: str) -> str:
    """Return the cost of a row: the median of all runs."""
    share = statistics.median(getattr(each, measure) for each in costs) / rows * 1e9
    return f"{share:,.0f}"


def seconds(process: psutil.Process) -> float:
    """Return the processor time of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def with_ended(process: psutil.Process) -> float:
    """Return the processor time of a process and of its ended children."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # The parent has counted this process.
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
