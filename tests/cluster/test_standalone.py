"""Programs on a real cluster: a master and two workers, each a JVM of its own."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from spark_kafka_source import KafkaProducer
from spark_kafka_source.net import Deadline
from spark_kafka_source.testing import LocalKafka
from tests.cluster.standalone import StandaloneCluster
from tests.exactly_once.judge import Verdict, found_by_confluent, judge

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PROGRAM = Path(__file__).with_name("program.py")
PARTITIONS, ROWS, BATCHES = 4, 400, 5
ALL_THERE = Verdict(lost=0, doubled=0, held_up=0)
_PROGRAM_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Copying:
    """Programs that count the rows of a topic, or copy them to another one."""

    cluster: StandaloneCluster
    kafka: LocalKafka
    topic: str
    checkpoint: Path

    @property
    def values(self) -> list[bytes]:
        return [b'{"n":%d}' % number for number in range(ROWS)]

    def prepare(self) -> None:
        """Create both topics, and write the rows."""
        for name in (self.topic, f"{self.topic}-copy"):
            self.kafka.create_topic(name, partitions=PARTITIONS)
        with KafkaProducer(bootstrap_servers=self.kafka.bootstrap_servers) as producer:
            for number, value in enumerate(self.values):
                producer.send(self.topic, value, partition=number % PARTITIONS)

    def count(self, **ways: Any) -> Popen[str]:
        """Start a program that counts the rows."""
        return self._submit({"kind": "count", "source": self._source()}, ways)

    def copy(
        self, guarantee: str, *, typed: bool = False, batches: int = BATCHES, **ways: Any
    ) -> Popen[str]:
        """Start a program that copies the rows in so many micro-batches.

        If `typed`, the values are decoded on the way, and encoded again.
        """
        sink = {
            "kafka.bootstrap.servers": self.kafka.bootstrap_servers,
            "topic": f"{self.topic}-copy",
            "deliveryGuarantee": guarantee,
        }
        source = self._source() | {"maxOffsetsPerTrigger": str(ROWS // batches)}
        if typed:
            sink |= {"value.format": "json"}
            source |= {"value.format": "json", "value.schema": "n INT"}
        checkpoint = str(self.checkpoint)
        asked = {"kind": "copy", "source": source, "sink": sink, "checkpoint": checkpoint}
        return self._submit(asked, ways)

    def batches(self) -> int:
        """Return the number of micro-batches that have ended."""
        return len(list((self.checkpoint / "commits").glob("[0-9]*")))

    def wait_for_batches(self, count: int) -> None:
        """Wait until the program has started, and so many micro-batches have ended."""
        deadline = Deadline.after_ms(_PROGRAM_SECONDS * 1000)
        while self.batches() < count:
            assert not deadline.expired, f"{self.batches()} micro-batches"
            time.sleep(0.05)

    def verdict(self) -> Verdict:
        """Compare the copy with the rows, by a reader that is not ours."""
        servers = self.kafka.bootstrap_servers
        return judge(found_by_confluent(servers, f"{self.topic}-copy", PARTITIONS), self.values)

    def _source(self) -> dict[str, str]:
        servers = {"kafka.bootstrap.servers": self.kafka.bootstrap_servers}
        return servers | {"subscribe": self.topic, "startingOffsets": "earliest"}

    def _submit(self, asked: object, ways: dict[str, Any]) -> Popen[str]:
        return self.cluster.submit(PROGRAM, json.dumps(asked), **ways)


@pytest.fixture
def copying(cluster: StandaloneCluster, kafka: LocalKafka, topic: str, tmp_path: Path) -> Copying:
    copying = Copying(cluster, kafka, topic, tmp_path / "checkpoint")
    copying.prepare()
    return copying


def ended(program: Popen[str], *, well: bool = True) -> str:
    """Wait for the end of a program, and return its output."""
    output, _ = program.communicate(timeout=_PROGRAM_SECONDS)
    assert (program.returncode == 0) is well, output[-4000:]
    return output


# -- ways to bring the package ---------------------------------------------------------------------


def test_installed(copying: Copying) -> None:
    assert f"rows {ROWS}" in ended(copying.count())
    ended(copying.copy("at-least-once"))
    assert copying.batches() == BATCHES
    assert copying.verdict() == ALL_THERE


@pytest.mark.reliability_full  # one more way: the next two have the hard parts
def test_a_packed_environment(copying: Copying, archive: Path) -> None:
    """The driver has an environment of its own, and each executor unpacks the archive."""
    environment = {
        "PYSPARK_DRIVER_PYTHON": str(archive.parent / "environment" / "bin" / "python"),
        "PYSPARK_PYTHON": "./environment/bin/python",
    }
    options = ["--archives", f"{archive}#environment"]
    ended(copying.copy("exactly-once", batches=2, options=options, environment=environment))
    assert copying.verdict() == ALL_THERE


def test_a_zip_on_both_paths(copying: Copying, package_zip: Path, bare_python: Path) -> None:
    environment = {"PYSPARK_PYTHON": str(bare_python), "PYTHONPATH": str(package_zip)}
    options = ["--py-files", str(package_zip)]
    # A zip has no bytecode, so each Python process compiles the package: few micro-batches.
    program = copying.copy("exactly-once", batches=2, options=options, environment=environment)
    output = ended(program)
    assert "--py-files alone" not in output
    assert copying.verdict() == ALL_THERE


@pytest.mark.reliability_full  # minutes, for a warning that unit tests have, too
def test_py_files_alone_are_warned_of_since_streams_fail(
    copying: Copying, package_zip: Path, bare_python: Path
) -> None:
    ways: dict[str, Any] = {
        "options": ["--py-files", str(package_zip)],
        "environment": {"PYSPARK_PYTHON": str(bare_python)},
    }
    output = ended(copying.count(**ways))
    assert f"rows {ROWS}" in output
    assert "package.zip came by --py-files alone, so streams will fail" in output
    output = ended(copying.copy("at-least-once", **ways), well=False)
    assert "ModuleNotFoundError" in output


def test_typed_values_on_a_local_cluster(copying: Copying) -> None:
    """Spark's `local-cluster` is a master and workers that live as long as the program."""
    local = ["--master", "local-cluster[2,1,400]"]
    ended(copying.copy("exactly-once", typed=True, options=local))
    assert copying.batches() == BATCHES
    assert copying.verdict() == ALL_THERE


# -- what dies meanwhile ---------------------------------------------------------------------------


@pytest.mark.reliability_full  # a worker that dies takes its executor along: see below
def test_an_executor_dies_in_mid_stream(copying: Copying) -> None:
    program = copying.copy("exactly-once")
    copying.wait_for_batches(2)
    copying.cluster.kill_executor()
    ended(program)
    assert copying.verdict() == ALL_THERE


def test_a_worker_dies_in_mid_stream(copying: Copying) -> None:
    program = copying.copy("exactly-once")
    copying.wait_for_batches(2)
    copying.cluster.kill_worker(0)
    try:
        ended(program)
    finally:
        copying.cluster.start_worker(0)
    assert copying.verdict() == ALL_THERE
