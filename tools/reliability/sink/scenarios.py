"""The faults of a query that copies a topic, and runs again and again until all is copied."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from threading import Thread

import psutil

from spark_kafka_source.testing import LocalKafka
from tools.reliability.child import TIMEOUT_SECONDS, SparkChild
from tools.reliability.leaders import make_whole
from tools.reliability.sink.driver import CLUSTER, LOCAL, Orders
from tools.reliability.sink.faulty import FORMAT, OPTION, Faults
from tools.reliability.sink.judge import Verdict, judge
from tools.traffic import Events

MODULE = "tools.reliability.sink.driver"
EXACTLY_ONCE, AT_LEAST_ONCE, PEER = "exactly-once", "at-least-once", "Spark's own sink"
_PARTITIONS = 3
_KEYS = 16
_ROWS_A_ROUND = 400
_ROWS_A_BATCH = 120
# With so many tasks, nearly all with rows, a decision about them has several parts.
_MANY_TASKS = 200
_LATEST_DEATH_SECONDS = 4.0
_LATEST_BROKER_FAULT_SECONDS = 8.0
_BROKER_AWAY_SECONDS = 4.0
_MOST_RUNS = 4
_LONG_SECONDS = 3 * TIMEOUT_SECONDS


@dataclass
class Copying:
    """A topic that is filled round by round, and its copy by drivers."""

    kafka: LocalKafka
    directory: Path
    chance: Random
    guarantee: str = EXACTLY_ONCE
    tasks: int = 4
    keys: int = _KEYS
    rows_a_batch: int = _ROWS_A_BATCH
    rows_a_round: int = _ROWS_A_ROUND
    master: str = LOCAL
    has_two_targets: bool = False
    rounds: int = 0
    faults: int = 0
    rows: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    idle: list[SparkChild] = field(default_factory=list)
    name: str = field(default_factory=lambda: f"sink-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        self.source, self.target, self.second = (
            Events(self.kafka, f"{self.name}{suffix}") for suffix in ("", "-to", "-to-second")
        )
        for each in (self.source, self.target, self.second):
            each.create(_PARTITIONS)

    def fill(self) -> None:
        """Write more rows to copy, for a few micro-batches."""
        for partition in range(_PARTITIONS):
            first = len(self.rows)
            numbers = range(first, first + self.rows_a_round // _PARTITIONS)
            self.source.write(numbers, partition)
            self.rows += numbers

    def orders(self, faults: Faults | None = None, **more: object) -> Orders:
        source = self.source.options(maxOffsetsPerTrigger=self.rows_a_batch)
        sink = {
            "format": "kafka" if self.guarantee == PEER else FORMAT,
            "kafka.bootstrap.servers": self.kafka.bootstrap_servers,
            "topic": self.target.name,
            "kafka.max.block.ms": "60000",
        }
        seed = f"{self.chance.random()}"
        if self.guarantee != PEER:
            sink["deliveryGuarantee"] = self.guarantee
            if self.guarantee == EXACTLY_ONCE:
                sink["transactionalIdPrefix"] = self.target.name
            sink[OPTION] = replace(faults or Faults(""), seed=seed).to_json()
        given = {name: str(each) for name, each in source.items()}
        checkpoint = str(self.directory / f"checkpoint-{self.name}")
        second = self.second.name if self.has_two_targets else ""
        return replace(
            Orders(given, sink, checkpoint, self.tasks, self.keys, seed, second_topic=second),
            **more,  # type: ignore[arg-type]
        )

    def new_driver(self) -> SparkChild:
        """Start a driver, which waits for its orders; for `closing`."""
        return SparkChild(MODULE, {"SINK_MASTER": self.master})

    @contextmanager
    def driver(self) -> Iterator[SparkChild]:
        """Lend a driver that outlives its orders: it is kept for those that come."""
        driver = self.idle.pop() if self.idle else self.new_driver()
        try:
            yield driver
        except BaseException:
            driver.close()
            raise
        self.idle.append(driver)

    def begin(self, driver: SparkChild, orders: Orders) -> Path:
        """Have the driver carry out the orders. Return its report's path."""
        report = self.directory / f"report-{uuid.uuid4().hex}"
        driver.begin(replace(orders, report=str(report)).to_json())
        return report

    def end(self, driver: SparkChild, report: Path) -> int:
        """Wait for the driver's report, and return the status in it."""

        def is_done() -> bool:
            assert driver.there(), "the driver is gone"
            return report.exists() and report.read_text().endswith("\n")

        _wait(is_done, "not done")
        return self.ended(int(report.read_text()))

    def run(self, orders: Orders) -> int:
        """Have a driver carry out the orders, and return their status."""
        with self.driver() as driver:
            return self.end(driver, self.begin(driver, orders))

    def run_to_death(self, orders: Orders) -> int:
        """Have a new driver carry out the orders, which may kill it. Return its exit status."""
        with closing(self.new_driver()) as driver:
            return self.ended(driver.run(orders.to_json(), _LONG_SECONDS))

    def close(self) -> None:
        """End the drivers that are kept."""
        while self.idle:
            self.idle.pop().close()

    def ended(self, status: int) -> int:
        self.ends.append(status)
        self.faults += status != 0
        return status

    def finish(self) -> Verdict:
        """Copy the rest without faults, and judge the copy."""
        self.fill()
        for _ in range(_MOST_RUNS):
            if self.run(self.orders()) == 0:
                break
        else:
            raise AssertionError(f"the query fails again and again: {self.ends}")
        servers = self.kafka.bootstrap_servers
        targets = [self.target.name, self.second.name]
        return judge(servers, targets, _PARTITIONS, self.rows)


def _wait(condition: Callable[[], bool], failure: str) -> None:
    until_seconds = time.monotonic() + _LONG_SECONDS
    while not condition():
        assert time.monotonic() < until_seconds, f"{failure} within {_LONG_SECONDS} s"
        time.sleep(0.1)


def drivers_killed(copying: Copying) -> None:
    """Kill drivers at any moment after their start."""
    after_seconds = copying.chance.uniform(0, _LATEST_DEATH_SECONDS)
    copying.run_to_death(copying.orders(dies_after_seconds=after_seconds))


def drivers_killed_in_commit(copying: Copying) -> None:
    """Kill drivers 0 to 300 ms after the start of a commit."""
    with closing(copying.new_driver()) as driver:
        faults = Faults("", commits=0.6, group=driver.pid)
        copying.ended(driver.run(copying.orders(faults).to_json(), _LONG_SECONDS))


def tasks_killed(copying: Copying) -> None:
    """Fail or kill a third of the attempts, half way or after they have written."""
    copying.run(copying.orders(Faults("", tasks=0.33), rows_fail=0.2))
    copying.faults += 1


def queries_stopped(copying: Copying) -> None:
    """Call `query.stop()` at a random moment."""
    copying.run(copying.orders(stops_after_seconds=copying.chance.uniform(0, 3)))


def fan_out(copying: Copying) -> None:
    """Kill drivers that write to two topics, at any moment and in a commit."""
    copying.has_two_targets = True
    if copying.rounds % 2:
        drivers_killed(copying)
    else:
        drivers_killed_in_commit(copying)


def driver_stands_still(copying: Copying) -> None:
    """Let a driver stand still while another one copies all, and then go on."""
    after_seconds = copying.chance.uniform(0, _LATEST_DEATH_SECONDS)
    with closing(copying.new_driver()) as first, copying.driver() as second:
        orders = copying.orders(stands_still_after_seconds=after_seconds)
        report = copying.begin(first, orders)
        _wait(lambda: report.exists() or _stands_still(first), "neither done nor standing still")
        copying.end(second, copying.begin(second, copying.orders()))
        copying.faults += not report.exists()
        os.killpg(first.pid, signal.SIGCONT)
        copying.end(first, report)


def _stands_still(driver: SparkChild) -> bool:
    return bool(psutil.Process(driver.pid).status() == psutil.STATUS_STOPPED)


def two_drivers(copying: Copying) -> None:
    """Run two drivers at once on one checkpoint."""
    with ExitStack() as stack:
        drivers = [stack.enter_context(copying.driver()) for _ in range(2)]
        reports = [copying.begin(driver, copying.orders()) for driver in drivers]
        for driver, report in zip(drivers, reports, strict=True):
            copying.end(driver, report)


def executors_killed(copying: Copying) -> None:
    """Kill one of two executors repeatedly. Some tasks dawdle, and Spark tries them elsewhere."""
    copying.master = CLUSTER
    with copying.driver() as driver:
        report = copying.begin(driver, copying.orders(Faults("", dawdlers=0.1)))
        _kill_executors(copying, driver)
        copying.end(driver, report)


def _kill_executors(copying: Copying, driver: SparkChild) -> None:
    for _ in range(2):
        time.sleep(copying.chance.uniform(5, 15))
        found = [each for each in driver.there() if "CoarseGrained" in " ".join(_command(each))]
        if found:
            with suppress(psutil.NoSuchProcess):
                copying.chance.choice(found).kill()
                copying.faults += 1


def _command(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess):
        return list(process.cmdline())
    return []


def speculation(copying: Copying) -> None:
    """Make some tasks dawdle, so that Spark runs them again at another executor."""
    copying.master = CLUSTER
    copying.run(copying.orders(Faults("", dawdlers=0.2)))
    copying.faults += 1


def many_tasks(copying: Copying) -> None:
    """Run 200 tasks a micro-batch, and kill the driver."""
    copying.tasks = _MANY_TASKS
    copying.keys, copying.rows_a_batch, copying.rows_a_round = 400, 600, 1_200
    drivers_killed_in_commit(copying)


def all_of_it(copying: Copying) -> None:
    """Make one fault of the driver, let tasks fail meanwhile, and kill or stop a broker."""
    fault = copying.chance.choice(["time", "commit", "stop"])
    with closing(copying.new_driver()) as driver, _broker_away(copying):
        commits = 0.4 if fault == "commit" else 0.0
        orders = copying.orders(Faults("", tasks=0.2, commits=commits, group=driver.pid))
        if fault == "time":
            after_seconds = copying.chance.uniform(0, _LATEST_DEATH_SECONDS)
            orders = replace(orders, dies_after_seconds=after_seconds)
        elif fault == "stop":
            orders = replace(orders, stops_after_seconds=copying.chance.uniform(0, 3))
        copying.ended(driver.run(orders.to_json(), _LONG_SECONDS))


@contextmanager
def _broker_away(copying: Copying) -> Iterator[None]:
    """Kill or stop one of the brokers for a few seconds meanwhile."""
    broker = copying.chance.choice(copying.kafka.brokers)
    strike, end = copying.chance.choice(
        [(broker.kill, broker.start), (broker.pause, broker.resume)]
    )
    after_seconds = copying.chance.uniform(0, _LATEST_BROKER_FAULT_SECONDS)

    def act() -> None:
        time.sleep(after_seconds)
        strike()
        time.sleep(_BROKER_AWAY_SECONDS)
        end()

    thread = Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        make_whole(copying.kafka, copying.source.name, copying.target.name)
        copying.faults += 1


SCENARIOS: dict[str, Callable[[Copying], None]] = {
    "the driver killed at random": drivers_killed,
    "the driver killed in commit": drivers_killed_in_commit,
    "tasks that fail, and workers killed": tasks_killed,
    "the query stopped at random": queries_stopped,
    "two drivers on one checkpoint": two_drivers,
    "a driver stands still while another one goes on": driver_stands_still,
    "two topics in `foreachBatch`, the driver killed": fan_out,
    "200 tasks a batch, the driver killed in commit": many_tasks,
    "executors killed": executors_killed,
    "speculation": speculation,
    "all of it at random": all_of_it,
}


def run_scenario(copying: Copying, name: str, rounds: int) -> Verdict:
    """Run this number of rounds on one checkpoint, then the rest without faults.

    Return the verdict.
    """
    with closing(copying):
        for _ in range(rounds):
            copying.fill()
            SCENARIOS[name](copying)
            copying.rounds += 1
        return copying.finish()
