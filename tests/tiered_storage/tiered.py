"""A broker with tiered storage in a folder, and a topic whose older segments are only there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka as ck

from spark_kafka_source import KafkaAdmin, OffsetSpec, TopicPartition
from spark_kafka_source.testing import LocalKafka, resolve
from tools.traffic import TIMEOUT_SECONDS, wait_until

FIRST_MS = 1_700_000_000_000
STEP_MS = 10
PARTITIONS = 2
# The smallest segment that Kafka allows.
SEGMENT_BYTES = 1 << 20
VALUE_BYTES = 2_000
_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
_OFTEN_MS = "200"
_KAFKA = "4.3.1"
"""The newest Kafka whose jar of kafka-storage's tests is published."""

Row = tuple[int, int, bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]
"""Partition, offset, key, value, milliseconds since 1970, headers."""


@dataclass(frozen=True, slots=True)
class TieredKafka:
    """The broker, and the folder of its remote storage."""

    kafka: LocalKafka
    storage: Path

    @property
    def servers(self) -> str:
        return self.kafka.bootstrap_servers

    def restart(self) -> None:
        """Kill the broker and start it. Its own clients, of remote storage, delay a quiet end."""
        self.kafka.kill()
        self.kafka.start()

    def create_topic(self, name: str, partitions: int = PARTITIONS) -> None:
        """Create a topic whose closed segments leave the broker as soon as they are uploaded."""
        configs = {
            "remote.storage.enable": "true",
            "segment.bytes": str(SEGMENT_BYTES),
            "local.retention.bytes": "1",
        }
        self.kafka.create_topic(name, partitions, configs=configs)

    def wait_for_tiering(self, topic: str, partitions: int = PARTITIONS) -> list[int]:
        """Wait until the broker has only the segments that it writes to. Return their starts."""
        asked = {
            TopicPartition(topic, each): OffsetSpec.earliest_local() for each in range(partitions)
        }
        found: list[int] = []

        def is_done() -> bool:
            listed = admin.list_offsets(asked)
            found[:] = [0 if at is None else at.offset for _, at in sorted(listed.items())]
            return min(found) > 0 and all(
                self.local_starts(topic, partition) == [start]
                for partition, start in enumerate(found)
            )

        with KafkaAdmin(bootstrap_servers=self.servers) as admin:
            wait_until(is_done)
        return found

    def remote_segments(self, topic: str, partition: int = 0) -> list[Path]:
        """Return the segments in remote storage, by their first offset."""
        return sorted(self.storage.rglob(f"{topic}-{partition}-*/*.log"))

    def local_starts(self, topic: str, partition: int) -> list[int]:
        """Return the first offsets of the segments on the broker's disk."""
        folder = self.kafka.broker(1).log_dir / f"{topic}-{partition}"
        return sorted(int(each.stem) for each in folder.glob("*.log"))


@contextmanager
def tiered_kafka(folder: Path) -> Iterator[TieredKafka]:
    """Run a broker. `LocalTieredStorage` is in the tests' jar of kafka-storage."""
    (jar,) = resolve([f"org.apache.kafka:kafka-storage:{_KAFKA}:test"], transitive=False)
    properties = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.storage.manager.class.path": str(jar),
        "rsm.config.dir": str(folder),
        "remote.log.metadata.manager.listener.name": "INTERNAL",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "remote.log.manager.task.interval.ms": _OFTEN_MS,
        "log.retention.check.interval.ms": _OFTEN_MS,
        "log.initial.task.delay.ms": _OFTEN_MS,
    }
    with LocalKafka(version=_KAFKA, properties=properties) as kafka:
        yield TieredKafka(kafka, folder)


@dataclass
class Written:
    """The rows of a topic, as confluent-kafka wrote them."""

    tiered: TieredKafka
    topic: str
    rows: list[Row] = field(default_factory=list)
    aborted: list[Row] = field(default_factory=list)
    number: int = 0

    def write(self, count: int, *, compression: str = "none", partitions: int = PARTITIONS) -> None:
        """Write so many records to each partition."""
        settings = {"compression.type": compression, "batch.size": 100_000, "linger.ms": 5}
        producer = ck.Producer({"bootstrap.servers": self.tiered.servers, **settings})
        self.rows += self._send(producer, count, partitions)

    def write_in_transaction(self, count: int, *, commit: bool) -> None:
        """Write so many records to each partition in a transaction, and end it."""
        settings = {"transactional.id": f"{self.topic}-{self.number}"}
        producer = ck.Producer({"bootstrap.servers": self.tiered.servers, **settings})
        producer.init_transactions(TIMEOUT_SECONDS)
        producer.begin_transaction()
        rows = self._send(producer, count, PARTITIONS)
        if commit:
            producer.commit_transaction(TIMEOUT_SECONDS)
            self.rows += rows
        else:
            producer.abort_transaction(TIMEOUT_SECONDS)
            self.aborted += rows

    def _send(self, producer: ck.Producer, count: int, partitions: int) -> list[Row]:
        rows: list[Row] = []

        def send(partition: int) -> None:
            number, self.number = self.number, self.number + 1
            key = None if number % 3 == 0 else f"key {number}".encode()
            # Noise: a compressed segment holds no more records than another.
            value = None if number % 50 == 7 else os.urandom(VALUE_BYTES)
            headers = (("number", str(number).encode()), ("none", None)) if number % 2 else ()
            timestamp_ms = FIRST_MS + number * STEP_MS

            def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
                assert error is None, error
                offset = message.offset()
                assert offset is not None
                rows.append((partition, offset, key, value, timestamp_ms, headers))

            producer.produce(
                self.topic,
                value,
                key,
                partition,
                on_delivery=delivered,
                timestamp=timestamp_ms,
                headers=list(headers),
            )

        for _ in range(count):
            for partition in range(partitions):
                send(partition)
        assert producer.flush(TIMEOUT_SECONDS) == 0
        assert len(rows) == count * partitions
        return rows
