"""A leader that is silent keeps a task's other partitions waiting for nothing.

The partitions have one replica, so no other broker can lead. The task runs in this process, by the
calls that Spark makes: Spark would show no row before the task's end.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice

import pyarrow as pa
import pytest

from spark_kafka_source.spark.source import tasks
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.testing import LocalKafka
from tests.reliability.conftest import Trial
from tests.spark.settings import parsed
from tools.reliability.deaf.cluster import create_topic
from tools.traffic import Writer

pytestmark = [pytest.mark.kafka, pytest.mark.long]

LEADERS = (1, 2, 3)
ROWS = 1_000
ROUNDS_A_RESTART_TAKES = 5
# No timeout ends before the test does, so that none can be what brings the rows.
NEVER_MS = "3600000"

Found = dict[int, list[int]]
"""The offsets of each partition, in the order of arrival."""


@pytest.fixture(scope="module")
def filled(own_kafka3: LocalKafka) -> str:
    """Return a topic with a partition for each broker, which has the only replica."""
    own_kafka3.start()
    create_topic(own_kafka3, "each-led-by-one", [[each] for each in LEADERS])
    with Writer(own_kafka3.bootstrap_servers, batch_num_messages=10) as writer:
        for number in range(ROWS * len(LEADERS)):
            writer.queue("each-led-by-one", b"%d" % number, partition=number % len(LEADERS))
    return "each-led-by-one"


@pytest.mark.parametrize("batches", [0, 3], ids=["before its first fetch", "while it reads"])
def test_the_rows_of_others_arrive_while_a_leader_is_stopped(
    batches: int, filled: str, all_brokers: LocalKafka, trial: Trial
) -> None:
    slowest = 0.0
    rounds = max(len(LEADERS), trial.rounds)
    for turn in range(rounds):
        with reading(filled, all_brokers) as task:
            found: Found = defaultdict(list)
            for batch in islice(task, batches):
                add(batch, found)
            slowest = max(slowest, read_while_stopped(task, found, all_brokers, turn))
    report(trial, f"stopped by SIGSTOP, after {batches} of its batches", rounds, slowest)


def test_a_leader_is_stopped_after_its_election(
    filled: str, all_brokers: LocalKafka, trial: Trial
) -> None:
    """The task asks it where its new log parts from the one that was planned."""
    slowest = 0.0
    rounds = max(1, trial.rounds // ROUNDS_A_RESTART_TAKES)
    for turn in range(rounds):
        with reading(filled, all_brokers) as task:
            all_brokers.broker(LEADERS[turn % len(LEADERS)]).restart()
            slowest = max(slowest, read_while_stopped(task, defaultdict(list), all_brokers, turn))
    report(trial, "restarted after the plan, and stopped by SIGSTOP", rounds, slowest)


def report(trial: Trial, what: str, rounds: int, slowest: float) -> None:
    """Add a row to the table."""
    trial.report(
        "15",
        f"{rounds} times one of the three leaders of a task's partitions {what}",
        f"all rows of the other two after at most {slowest:.2f} s, those of the third once it "
        "goes on; lost 0, doubled 0",
    )


@contextmanager
def reading(topic: str, kafka: LocalKafka) -> Iterator[Iterator[pa.RecordBatch]]:
    """Plan one task of all partitions, and yield its batches. Its client is a new one."""
    options = parsed(
        **{
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "kafka.request.timeout.ms": NEVER_MS,
            "kafka.default.api.timeout.ms": NEVER_MS,
            "kafkaConsumer.pollTimeoutMs": NEVER_MS,
            "kafka.max.partition.fetch.bytes": "1000",
            "minRecordsPerPartition": str(ROWS * len(LEADERS)),
            "subscribe": topic,
        }
    )
    reader = KafkaBatchReader(options)
    (task,) = reader.partitions()
    try:
        with closing(reader.read(task)) as batches:  # type: ignore[type-var]  # a generator
            yield batches
    finally:
        tasks._kept_clients.take(options.client).close()


def read_while_stopped(
    task: Iterator[pa.RecordBatch], found: Found, kafka: LocalKafka, turn: int
) -> float:
    """Read all, with a leader stopped until all rows of the others are there.

    Return how many seconds these took.
    """
    stopped = turn % len(LEADERS)
    broker = kafka.broker(LEADERS[stopped])
    others = [each for each in range(len(LEADERS)) if each != stopped]
    began, took = time.monotonic(), None
    broker.pause()
    try:
        for batch in task:
            add(batch, found)
            if took is None and all(len(found[each]) == ROWS for each in others):
                took = time.monotonic() - began
                assert len(found[stopped]) < ROWS, "the leader was stopped too late"
                broker.resume()
    finally:
        broker.resume()
    assert found == {each: list(range(ROWS)) for each in range(len(LEADERS))}
    assert took is not None
    return took


def add(batch: pa.RecordBatch, found: Found) -> None:
    (partition,) = set(batch["partition"].to_pylist())
    found[partition] += batch["offset"].to_pylist()
