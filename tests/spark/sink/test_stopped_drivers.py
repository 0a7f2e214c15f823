"""Drivers that stand still amid a commit, or are killed, for longer than transactions stay open.

The driver is a process of its own, with Spark. Each row of its topic is copied once in the end, or
an error says that rows are lost. The page's words are in each test.
"""

import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.admin.transactions import (
    ONGOING,
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import committed, wait_for_markers
from tests.exactly_once.query import client_of
from tests.exactly_once.steps import Step
from tests.producer.blocking import BlockingCoordinator
from tests.spark.sink.watched import OPTION, Watch
from tests.spark.sink.watched_driver import MODULE, Orders
from tests.spark.sink.written import to
from tools.reliability.child import SparkChild
from tools.traffic import Events, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

SOON_MS, PATIENCE_MS = 15_000, 60_000
# The first task's transaction begins so long before the second one's, and times out before it.
APART_SECONDS = 4.0
ROWS = 3
MOST_TRIES = 3


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[LocalKafka]:
    """A broker that aborts a transaction soon after its time is up."""
    name = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    with LocalKafka(properties={name: "500"}) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def idle() -> Iterator[list[SparkChild]]:
    """Drivers that wait for orders."""
    drivers: list[SparkChild] = []
    yield drivers
    for each in drivers:
        each.close()


@pytest.fixture
def driver(copy: "Copy", idle: list[SparkChild]) -> Iterator[SparkChild]:
    """A driver that carries out orders one by one. It is kept unless it was left amid one."""
    driver = idle.pop() if idle else SparkChild(MODULE)
    yield driver
    if copy.is_idle:
        idle.append(driver)
    else:
        driver.close()


class Copy:
    """A topic of two partitions, and its copy. Each partition has a task."""

    def __init__(self, kafka: LocalKafka, topic: str, directory: Path) -> None:
        self.directory = directory
        self.source = Events(kafka, topic)
        self.target = self.source.another("target")
        self.source.fill(ROWS, ROWS)
        self.target.create(2)
        self.names = Names(f"p-{uuid.uuid4().hex[:8]}")
        self.reports: list[Path] = []

    @property
    def is_idle(self) -> bool:
        """Whether all orders are carried out."""
        return all(each.exists() for each in self.reports)

    @property
    def servers(self) -> str:
        return self.source.kafka.bootstrap_servers

    def watch(self, step: Step | None = None, group: int = 0) -> Watch:
        return Watch(str(self.directory), step.name if step else "", group)

    def orders(self, watch: Watch, timeout_ms: int, late: dict[str, Path]) -> Orders:
        """Return orders to copy the topic. `late` names partitions, each with a file."""
        given = {
            "deliveryGuarantee": "exactly-once",
            "transactionalIdPrefix": self.names.prefix,
            "kafka.transaction.timeout.ms": timeout_ms,
            OPTION: watch.to_json(),
        }
        report = self.directory / f"report-{len(self.reports)}"
        self.reports.append(report)
        return Orders(
            {name: str(each) for name, each in self.source.options().items()},
            {name: str(each) for name, each in to(self.target, **given).items()},
            str(self.directory / "checkpoint"),
            str(report),
            {name: str(path) for name, path in late.items()},
        )

    def run(self, driver: SparkChild) -> str:
        """Copy what is not copied yet. Return the text of the query's error, or none."""
        orders = self.orders(self.watch(), PATIENCE_MS, {})
        driver.begin(orders.to_json())
        return self.error(orders)

    def error(self, orders: Orders) -> str:
        """Wait for the query's end. Return the text of its error, or none."""
        report = Path(orders.report)
        wait_until(report.exists)
        return report.read_text()

    def transactions(self) -> list[TransactionDescription]:
        """Return the last transactions of all tasks, the first that began first."""
        with client_of(self.servers) as client:
            listed, _ = client.run(list_transactions(client))  # A coordinator may not be ready yet.
            ids = [each.transactional_id for each in listed]
            found = client.run(describe_transactions(client, filter(self.names.is_task_id, ids)))
        begun = [each for each in found.values() if each is not None and each.started_at_ms >= 0]
        return sorted(begun, key=lambda each: each.started_at_ms)

    def open(self) -> list[TransactionDescription]:
        return [each for each in self.transactions() if each.state == ONGOING]

    def is_open(self, one: TransactionDescription) -> bool:
        return one.transactional_id in {each.transactional_id for each in self.open()}

    def judge(self) -> tuple[int, int]:
        """Return the numbers of lost and of doubled rows. No transaction may be open."""
        assert not wait_for_markers(self.servers, self.target.name, 2)
        found = Counter(committed(self.servers, self.target.name, 2))
        wanted = Counter(b"%d:%d" % (task, row) for task in range(2) for row in range(ROWS))
        return (wanted - found).total(), (found - wanted).total()


@pytest.fixture
def copy(own_kafka: LocalKafka, topic: str, tmp_path: Path) -> Copy:
    return Copy(own_kafka, topic, tmp_path)


def stand_still_at(step: Step, copy: Copy, driver: SparkChild) -> str:
    """Stop the driver at the step until its first transaction is over. Return its error's text."""
    for tries in range(MOST_TRIES):
        go_on = copy.directory / f"go-on-{tries}"
        watch = copy.watch(step)
        orders = copy.orders(watch, SOON_MS << tries, {"1": go_on})
        before = len(copy.transactions())
        driver.begin(orders.to_json())
        wait_until(lambda: len(copy.transactions()) > before)  # noqa: B023 - called now
        time.sleep(APART_SECONDS)
        go_on.touch()
        wait_until(lambda: watch.is_there or Path(orders.report).exists())  # noqa: B023 - now
        if watch.is_there:
            break
        assert "TransactionTimedOutError" in copy.error(orders)  # A busy machine: more time.
    first = copy.transactions()[before]
    with ExitStack() as stack:
        for process in driver.there():
            process.send_signal(signal.SIGSTOP)
            stack.callback(os.kill, process.pid, signal.SIGCONT)
        wait_until(lambda: not copy.is_open(first))
    return copy.error(orders)


def full(value: object) -> Any:
    """Return a parameter for `make reliability` alone: each costs a minute of standing still."""
    return pytest.param(value, marks=pytest.mark.reliability_full)


# "A micro-batch that takes longer than `kafka.transaction.timeout.ms` fails, and is run again."
@pytest.mark.parametrize("step", [Step.FENCED, full(Step.READ)], ids=lambda step: step.name)
def test_a_driver_that_stands_still_before_the_check(
    step: Step, copy: Copy, driver: SparkChild
) -> None:
    assert "TransactionTimedOutError" in stand_still_at(step, copy, driver)
    assert copy.run(driver) == ""
    assert copy.judge() == (0, 0)


# "If a driver is gone for longer *after* a decision, the rows that are not committed by then are
# lost. The error names the tasks and says what to do. It is never only a line in a log."
@pytest.mark.parametrize(
    "step",
    [full(Step.CHECKED), full(Step.RECORDED), Step.DECIDED, full(Step.ONE_ENDED)],
    ids=lambda step: step.name,
)
def test_a_driver_that_stands_still_after_the_check(
    step: Step, copy: Copy, driver: SparkChild
) -> None:
    first_error = stand_still_at(step, copy, driver)
    error = copy.run(driver)
    found = copy.judge()
    print(step, found, first_error[:300], error[:300], sep="\n")
    assert found == (0, 0) or "DecidedRowsLostError" in error, "rows are lost or doubled in silence"
    if "DecidedRowsLostError" in error:
        assert "DecidedRowsLostError" in copy.run(driver), "the error comes only once"
    # The check's time is the decision's. After it, the most urgent transaction is ended first, and
    # its fate is the fate of all. So rows can be lost only amid the ends.
    if step is not Step.ONE_ENDED:
        assert (error, found) == ("", (0, 0))


# "The driver commits the old transactions and aborts the new ones." A replay can take longer than
# the old ones stay open.
@pytest.mark.parametrize("late", [["1"], full(["0", "1"])], ids=["one-task-late", "all-tasks-late"])
def test_a_replay_that_takes_longer_than_the_decided_transactions(
    late: list[str], copy: Copy, driver: SparkChild
) -> None:
    with closing(SparkChild(MODULE)) as dying:
        orders = copy.orders(copy.watch(Step.DECIDED, dying.pid), PATIENCE_MS, {})
        assert dying.run(orders.to_json()) == -signal.SIGKILL
        copy.reports.clear()
    first, second = copy.open()
    with client_of(copy.servers) as client:  # As though it had died amid the ends.
        BlockingCoordinator(client, first.transactional_id).end(first.producer, commit=True)
    go_on = copy.directory / "go-on"
    orders = copy.orders(copy.watch(), PATIENCE_MS, dict.fromkeys(late, go_on))
    driver.begin(orders.to_json())
    wait_until(lambda: not copy.is_open(second))
    go_on.touch()
    error = copy.error(orders)
    found = copy.judge()
    print(found, error[:300], sep="\n")
    assert found == (0, 0) or "DecidedRowsLostError" in error, "rows are lost or doubled in silence"
    assert (error, found) == ("", (0, 0))
