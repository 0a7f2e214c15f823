"""Kafka to Delta Lake and back. Both drivers are killed on the way, and each row is there once."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from spark_kafka_source import KafkaProducer
from spark_kafka_source.testing import LocalKafka
from tests.delta.driver import FROM_TABLE, TO_TABLE, DeltaOrders
from tests.exactly_once.judge import Verdict, found_by_confluent, judge
from tools.reliability.child import SparkChild

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PARTITIONS, ROWS, A_BATCH = 3, 600, 100
_DRIVER_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A topic, a table, and a copy of the topic that is made from the table."""

    kafka: LocalKafka
    topic: str
    directory: Path

    @property
    def values(self) -> list[bytes]:
        return [b'{"n":%d,"text":"row %d"}' % (number, number) for number in range(ROWS)]

    @property
    def copy(self) -> str:
        return f"{self.topic}-copy"

    def prepare(self) -> None:
        """Create both topics, and write the rows."""
        for name in (self.topic, self.copy):
            self.kafka.create_topic(name, partitions=PARTITIONS)
        with KafkaProducer(bootstrap_servers=self.kafka.bootstrap_servers) as producer:
            for number, value in enumerate(self.values):
                producer.send(self.topic, value, partition=number % PARTITIONS)

    def to_table(self) -> DeltaOrders:
        """Return the orders of the driver that fills the table."""
        options = {
            "subscribe": self.topic,
            "startingOffsets": "earliest",
            "value.format": "json",
            "value.schema": "n INT, text STRING",
            "maxOffsetsPerTrigger": str(A_BATCH),
        }
        return self._orders(TO_TABLE, options)

    def from_table(self) -> DeltaOrders:
        """Return the orders of the driver that writes the table to the second topic."""
        options = {
            "topic": self.copy,
            "value.format": "json",
            "deliveryGuarantee": "exactly-once",
        }
        return self._orders(FROM_TABLE, options)

    def rows(self) -> list[tuple[int, str]]:
        """Return the rows of the table, read from its log and its files without Spark."""
        files: dict[str, None] = {}
        for path in sorted(Path(self.directory, "table", "_delta_log").glob("*.json")):
            for line in path.read_text().splitlines():
                action = json.loads(line)
                if "add" in action:
                    files[unquote(action["add"]["path"])] = None
                elif "remove" in action:
                    del files[unquote(action["remove"]["path"])]
        tables = (pq.read_table(self.directory / "table" / name).to_pylist() for name in files)
        return [(row["n"], row["text"]) for table in tables for row in table]

    def verdict(self) -> Verdict:
        """Compare the copy with the rows, by a reader that is not ours."""
        found = found_by_confluent(self.kafka.bootstrap_servers, self.copy, PARTITIONS)
        return judge(found, self.values)

    def _orders(self, kind: str, options: dict[str, str]) -> DeltaOrders:
        servers = {"kafka.bootstrap.servers": self.kafka.bootstrap_servers}
        table, checkpoint = self.directory / "table", self.directory / kind.replace(" ", "-")
        return DeltaOrders(kind, servers | options, str(table), str(checkpoint))


@pytest.fixture
def pipeline(kafka: LocalKafka, topic: str, tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(kafka, topic, tmp_path)
    pipeline.prepare()
    yield pipeline


def run_with_a_death(orders: DeltaOrders, kill_at: int) -> int:
    """Kill the driver when it plans micro-batch `kill_at`, and run another one to the end.

    Return how many micro-batches had ended at the kill.
    """
    with closing(SparkChild("tests.delta.driver")) as first:
        first.begin(orders.to_json())
        until_seconds = time.monotonic() + _DRIVER_SECONDS
        while not Path(orders.checkpoint, "offsets", str(kill_at)).exists():
            assert not first.has_ended
            assert time.monotonic() < until_seconds
            time.sleep(0.01)
    ended = batches(orders)
    with closing(SparkChild("tests.delta.driver")) as second:
        assert second.run(orders.to_json(), _DRIVER_SECONDS) == 0
    return ended


def batches(orders: DeltaOrders) -> int:
    """Return the number of micro-batches that have ended."""
    return len(list(Path(orders.checkpoint, "commits").glob("[0-9]*")))


@pytest.mark.reliability_full  # for minutes
def test_kafka_to_delta_and_back(pipeline: Pipeline) -> None:
    ended = run_with_a_death(pipeline.to_table(), kill_at=2)
    assert ended < batches(pipeline.to_table())
    expected = Counter((number, f"row {number}") for number in range(ROWS))
    assert Counter(pipeline.rows()) == expected
    ended = run_with_a_death(pipeline.from_table(), kill_at=2)
    assert ended < batches(pipeline.from_table())
    assert pipeline.verdict() == Verdict(lost=0, doubled=0, held_up=0)
