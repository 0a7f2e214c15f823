"""The same records by Kafka's Java producer, by confluent-kafka and by ours, on a real broker.

    python -m tools.three_producers

Prints two tables: the share of each partition of records without a key, and the bytes that records
take on the wire if the topic takes only small batches.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pyarrow as pa

from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.testing import LocalKafka, kafka_jars
from tools.java_program import JavaProgram, run_java

WAIT_SECONDS = 120.0
PARTITIONS = 6
SMALL_BATCHES = {"max.message.bytes": "100000"}
"""The configuration of a topic that takes only small batches."""


@dataclass(frozen=True, slots=True)
class Load:
    """Records without a key. `pause_us` is the time from one record to the next."""

    count: int
    value_bytes: int
    pause_us: int = 0

    @property
    def bytes(self) -> int:
        """The bytes of all values."""
        return self.count * self.value_bytes

    def ticks(self) -> Iterator[None]:
        """Wait for the time of each record."""
        at_seconds = time.monotonic()
        for _ in range(self.count):
            yield
            at_seconds += self.pause_us / 1e6
            left_seconds = at_seconds - time.monotonic()
            if self.pause_us and left_seconds > 0:
                time.sleep(left_seconds)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The partition of each record, in the order of the calls, and the bytes of all requests."""

    partitions: Sequence[int]
    wire_bytes: int

    @property
    def counts(self) -> list[int]:
        """The number of records of each partition."""
        found = Counter(self.partitions)
        return [found[each] for each in range(PARTITIONS)]

    @property
    def longest_run(self) -> int:
        """The most records in a row that one partition got."""
        return max(len(list(run)) for _, run in groupby(self.partitions))


Way = Callable[[str, str, Load, Mapping[str, Any]], Outcome]
"""A function of the bootstrap servers, the topic, the load, and Kafka's settings."""


def by_send(servers: str, topic: str, load: Load, settings: Mapping[str, Any]) -> Outcome:
    """Write by `send`."""
    value = bytes(load.value_bytes)
    with KafkaProducer(**{"bootstrap.servers": servers, **settings}) as producer:
        producer.partitions_for(topic)
        futures = [producer.send(topic, value) for _ in load.ticks()]
        found = [each.result(WAIT_SECONDS).partition for each in futures]
        return Outcome(found, int(producer.metrics()["outgoing-byte-total"]))


def by_columns(servers: str, topic: str, load: Load, settings: Mapping[str, Any]) -> Outcome:
    """Write by one `send_columns`, or by one for each record if there are pauses."""
    rows = 1 if load.pause_us else load.count
    columns = pa.record_batch({"value": [bytes(load.value_bytes)] * rows})
    calls = load.ticks() if load.pause_us else range(1)
    with KafkaProducer(**{"bootstrap.servers": servers, **settings}) as producer:
        producer.partitions_for(topic)
        futures = [producer.send_columns(topic, columns) for _ in calls]
        runs = [run for each in futures for run in each.result(WAIT_SECONDS)]
        found = [each.partition for each in runs for _ in range(each.record_count)]
        return Outcome(found, int(producer.metrics()["outgoing-byte-total"]))


def by_confluent(servers: str, topic: str, load: Load, settings: Mapping[str, Any]) -> Outcome:
    """Write by confluent-kafka."""
    found: dict[int, int] = {}
    wire = [0]

    def told(number: int) -> Callable[[Any, Any], None]:
        def note(error: Any, message: Any) -> None:
            if error is not None:
                raise ck.KafkaException(error)
            found[number] = message.partition()

        return note

    config = {
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "statistics.interval.ms": 100,
        "stats_cb": lambda text: wire.append(json.loads(text)["tx_bytes"]),
        **settings,
    }
    producer = ck.Producer(config)
    value = bytes(load.value_bytes)
    for number, _ in enumerate(load.ticks()):
        while True:
            try:
                producer.produce(topic, value, on_delivery=told(number))
            except BufferError:
                producer.poll(0.1)
            else:
                break
        producer.poll(0)
    assert producer.flush(WAIT_SECONDS) == 0
    seen = len(wire)
    while len(wire) < seen + 2:  # The next statistics have all bytes.
        producer.poll(0.5)
    return Outcome([found[each] for each in range(load.count)], wire[-1])


def by_java(program: JavaProgram) -> Way:
    """Return the way that writes by Kafka's own producer."""

    def write(servers: str, topic: str, load: Load, settings: Mapping[str, Any]) -> Outcome:
        config = {"bootstrap.servers": servers, **settings}
        named = " ".join(f"{name}={value}" for name, value in config.items())
        asked = f"{topic} {load.count} {load.value_bytes} {load.pause_us} {named}"
        wire_bytes, partitions = program.ask(asked).split(" ")
        return Outcome([int(each) for each in partitions.split(",")], int(wire_bytes))

    return write


@contextmanager
def java(jars: Sequence[Path]) -> Iterator[JavaProgram]:
    """Run Kafka's own producers."""
    with run_java(Path(__file__).with_name("ThreeProducers.java"), jars) as program:
        yield program


OURS: Mapping[str, Way] = {"`send`": by_send, "`send_columns`": by_columns}
Case = tuple[Load, Mapping[str, Any]]
SPREAD: Mapping[str, Case] = {
    "slow: 3,000 records of 100 bytes in 4 s": (Load(3_000, 100, 1_333), {}),
    "the same, `linger.ms` 100": (Load(3_000, 100, 1_333), {"linger.ms": 100}),
    "the same, `linger.ms` 0": (Load(3_000, 100, 1_333), {"linger.ms": 0}),
    "fast: 60,000 records of 100 bytes": (Load(60_000, 100), {}),
    "the same, round robin": (
        Load(60_000, 100),
        {"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
    ),
}
SMALL: Mapping[str, Case] = {
    "18 MB": (Load(18_000, 1_000), {}),
    "18 MB, `batch.size` 1 MiB": (Load(18_000, 1_000), {"batch.size": 1 << 20}),
}


def main() -> None:
    with LocalKafka() as kafka, java(kafka_jars()) as program:
        ways = {**OURS, "Java": by_java(program), "confluent-kafka": by_confluent}
        print("| load | producer | records of each partition | longest run |\n|---|---|---|---|")
        for name, producer, found in _runs(kafka, ways, SPREAD, {}):
            print(f"| {name} | {producer} | {_spread(found)} |", flush=True)
        print("\n| records | producer | MB on the wire |\n|---|---|---|")
        for name, producer, found in _runs(kafka, ways, SMALL, SMALL_BATCHES):
            size = found if isinstance(found, str) else f"{found.wire_bytes / 1e6:.0f}"
            print(f"| {name} | {producer} | {size} |", flush=True)


def _runs(
    kafka: LocalKafka,
    ways: Mapping[str, Way],
    cases: Mapping[str, Case],
    configs: Mapping[str, str],
) -> Iterator[tuple[str, str, Outcome | str]]:
    """Yield the load, the producer, and the outcome or the error of each run."""
    for name, (load, settings) in cases.items():
        for producer, way in ways.items():
            if way is by_confluent and "partitioner.class" in settings:
                continue
            topic = f"beside-{uuid.uuid4().hex}"
            kafka.create_topic(topic, PARTITIONS, configs=configs)
            try:
                yield name, producer, way(kafka.bootstrap_servers, topic, load, settings)
            except ck.KafkaException as error:
                yield name, producer, f"records fail: {error.args[0].name()}"


def _spread(found: Outcome | str) -> str:
    if isinstance(found, str):
        return f"{found} |"
    counts = ", ".join(f"{each:,}" for each in found.counts)
    return f"{counts} | {found.longest_run:,}"


if __name__ == "__main__":
    main()
