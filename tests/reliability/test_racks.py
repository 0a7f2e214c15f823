"""Reads from the replica in the reader's rack (KIP-392), as the brokers' request logs show them."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
from pyspark import RDD
from pyspark.sql import Row, SparkSession

from spark_kafka_source.spark.python_worker import RACK
from spark_kafka_source.testing import Broker, LocalKafka
from tests.reliability.conftest import Trial
from tools.reliability.child import SparkChild
from tools.reliability.driver import Orders
from tools.reliability.leaders import Leaders
from tools.traffic import TIMEOUT_SECONDS, Events, Writer, batch, values, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

RACKS = {1: "a", 2: "b", 3: "c"}
ROWS, ROW_BYTES = 60_000, 1_000


@pytest.fixture(scope="module")
def logging_brokers(own_kafka3: LocalKafka) -> LocalKafka:
    """Brokers that log each request."""
    own_kafka3.start()
    for broker in own_kafka3.brokers:
        log_requests(own_kafka3, broker)
    return own_kafka3


def log_requests(kafka: LocalKafka, broker: Broker) -> None:
    which = ("--entity-type", "broker-loggers", "--entity-name", str(broker.node_id))
    kafka.tool("configs", "--alter", *which, "--add-config", "kafka.request.logger=DEBUG")


class Topic:
    """A topic of one partition, its leader, and a follower in the reader's rack."""

    def __init__(self, kafka: LocalKafka, events: Events) -> None:
        self.events = events
        events.create()
        (leader,) = Leaders(kafka, events.name).now()
        Leaders(kafka, events.name).await_in_sync(*RACKS)
        self.leader = kafka.broker(leader)
        self.follower = kafka.broker(min(RACKS.keys() - {leader}))
        self.rack = RACKS[self.follower.node_id]

    def options(self, **more: object) -> dict[str, object]:
        named = {"kafka.client.id": self.events.name, "kafkaConsumer.pollTimeoutMs": 20_000}
        return self.events.options() | named | more

    def fetches(self, broker: Broker) -> int:
        """Return the number of fetches of this topic's reader that the broker has answered."""
        lines = broker.log.read_text(errors="replace").splitlines()
        client = f'"clientId":"{self.events.name}'
        return sum('"requestApiKeyName":"FETCH"' in line and client in line for line in lines)

    @property
    def asked(self) -> tuple[int, int]:
        """Return the number of fetches that the leader and the follower have answered."""
        return self.fetches(self.leader), self.fetches(self.follower)


@pytest.fixture
def in_rack(logging_brokers: LocalKafka, topic: str) -> Iterator[Topic]:
    yield Topic(logging_brokers, Events(logging_brokers, topic))
    logging_brokers.start()


def read_by_option(spark: SparkSession, topic: Topic, _: Path) -> list[str]:
    return values(batch(spark, topic.options(**{"kafka.client.rack": topic.rack})))


def read_by_environment(_: SparkSession, topic: Topic, directory: Path) -> list[str]:
    options = {name: str(value) for name, value in topic.options().items()}
    with closing(SparkChild("tools.reliability.driver", {RACK: topic.rack})) as driver:
        assert driver.run(Orders(options, str(directory), attempt=0).to_json()) == 0
    (path,) = Path(directory, "rows").iterdir()
    return [value for _, _, value in json.loads(path.read_text())]


@pytest.mark.parametrize(
    "read",
    [read_by_option, pytest.param(read_by_environment, marks=pytest.mark.reliability_full)],
)
def test_the_replica_in_the_rack_is_read(
    spark: SparkSession,
    in_rack: Topic,
    tmp_path: Path,
    read: Callable[[SparkSession, Topic, Path], list[str]],
    trial: Trial,
) -> None:
    rows = [f"{number:04d}" for number in range(100)]
    for row in rows:
        in_rack.events.write([row])
    found = read(spark, in_rack, tmp_path)
    wait_until(lambda: all(in_rack.asked))
    by_leader, by_follower = in_rack.asked
    where = RACK if read is read_by_environment else "kafka.client.rack"
    trial.report(
        "KIP-392",
        f"a read of {len(rows)} rows with {where}, by the brokers' request logs",
        f"fetches from the leader: {by_leader}, from the replica in the rack: {by_follower}",
    )
    assert found == rows
    assert (by_leader, by_follower > 0) == (1, True)


def test_without_a_rack_the_leader_is_read(spark: SparkSession, in_rack: Topic) -> None:
    in_rack.events.write(["a"])
    assert values(batch(spark, in_rack.options())) == ["a"]
    wait_until(lambda: in_rack.asked[0])  # A broker logs an answer after it has sent it.
    by_leader, by_follower = in_rack.asked
    assert (by_leader > 0, by_follower) == (True, 0)


def test_the_leader_is_read_on_where_the_replica_is_killed(
    spark: SparkSession, in_rack: Topic, tmp_path: Path, trial: Trial
) -> None:
    name = in_rack.events.name
    with Writer(in_rack.events.kafka.bootstrap_servers, linger_ms=5) as writer:
        for number in range(ROWS):
            writer.queue(name, b"%0*d" % (ROW_BYTES, number))
            writer.producer.poll(0)
    options = in_rack.options(**{"kafka.client.rack": in_rack.rack})
    frame = batch(spark, options).select("offset", "value")
    started = Read(frame.rdd.mapPartitions(hold(str(tmp_path))), tmp_path)
    wait_until(lambda: all(in_rack.asked))
    before = in_rack.asked
    in_rack.follower.kill()
    found = started.finish()
    wait_until(lambda: in_rack.asked[0] > before[0])
    after = in_rack.asked
    trial.report(
        "KIP-392",
        f"the replica killed in the middle of a read of {ROWS} rows",
        f"fetches from it before: {before[1]}; from the leader before: {before[0]}, in all: "
        f"{after[0]}; rows lost or doubled: {0 if found == expected_rows() else 'some'}",
    )
    in_rack.follower.start()
    log_requests(in_rack.events.kafka, in_rack.follower)
    assert found == expected_rows()
    assert before[1] > 0
    assert after[0] > before[0]


def expected_rows() -> list[tuple[int, int]]:
    return [(number, number) for number in range(ROWS)]


class Read:
    """A read in its own thread. It waits after its first rows."""

    def __init__(self, rows: RDD[tuple[int, int]], directory: Path) -> None:
        self._directory, self._rows = directory, list[tuple[int, int]]()
        self._thread = Thread(target=self._collect, args=[rows])
        self._thread.start()
        wait_until(Path(directory, "held").exists)

    def finish(self) -> list[tuple[int, int]]:
        """Let the read go on. Return all rows in order."""
        Path(self._directory, "go").touch()
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()
        return sorted(self._rows)

    def _collect(self, rows: RDD[tuple[int, int]]) -> None:
        self._rows += rows.collect()


def hold(directory: str) -> Callable[[Iterable[Row]], Iterator[tuple[int, int]]]:
    """Pass offsets and numbers on. After the first ones wait for a file named `go`.

    What reads the topic then waits too, in the middle, since no more is taken from it.
    """

    def pass_on(rows: Iterable[Row]) -> Iterator[tuple[int, int]]:
        for row in rows:
            Path(directory, "held").touch()
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while not Path(directory, "go").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield row.offset, int(row.value)

    return pass_on
