"""Cost of writing a record to a broker, without Spark, against other producers.

    python -m tools.benchmarks.produce [--rows N] [--runs N] [--cases none-8,lz4-8,lz4-1] [--page F]

Prints nanoseconds per record of each producer, for each codec and number of partitions: its own
processor time, the broker's, and the elapsed time until all records are acknowledged with acks=all,
from the start of the producer to its end. Then it prints how many times as much confluent-kafka
takes of each: median (least-most) of the turns. Keys have 10 bytes, values 150 bytes of JSON. All
are ready in the producer's form: columns, or single `bytes`. All producers are idempotent.
kafka-python takes part if it is installed.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import confluent_kafka as ck
import pyarrow as pa

from spark_kafka_source import KafkaConsumer, TopicPartition
from spark_kafka_source.producer import KafkaProducer
from spark_kafka_source.testing import LocalKafka, kafka_jars
from tools.benchmarks.costs import Costs, metered, nanoseconds, ratio
from tools.benchmarks.page import add_page, publish, table
from tools.benchmarks.session import broker
from tools.benchmarks.topics import json_value
from tools.java_program import JavaProgram, run_java

COLUMNS, ONE_BY_ONE = "`send_columns`", "`send`"
CONFLUENT, KAFKA_PYTHON = "confluent-kafka", "kafka-python"
JAVA, JAVA_TUNED = "Java", "Java, tuned"
TUNED = {"batch.size": 512 * 1024, "linger.ms": 20}
SLOW = {ONE_BY_ONE: 5, KAFKA_PYTHON: 20}
"""Slow ways, which take one Python object per record. They write one record in so many."""

HEAD = (
    "codec, partitions", "producer", "client ns", "broker ns", "passed ns", "client x", "both x",
    "passed x",
)  # fmt: skip
DISTINCT = 100_000
VALUE_BYTES = 150
_PATIENCE_SECONDS = 600
_numbers = count()


@dataclass(frozen=True, slots=True)
class Records:
    """The records, in the form of each producer."""

    keys: Sequence[bytes]
    values: Sequence[bytes]

    @classmethod
    def distinct(cls, how_many: int = DISTINCT) -> "Records":
        """Return records with distinct keys."""
        chance = random.Random(VALUE_BYTES)
        keys = [b"%010d" % each for each in chance.sample(range(10**9), how_many)]
        return cls(keys, [json_value(VALUE_BYTES, n, chance) for n in range(how_many)])

    def columns(self, rows: int) -> pa.Table:
        """Return a table of `rows` rows that repeats the records."""
        batch = pa.RecordBatch.from_pydict({"key": list(self.keys), "value": list(self.values)})
        whole, rest = divmod(rows, batch.num_rows)
        return pa.Table.from_batches([*[batch] * whole, batch.slice(0, rest)])

    def pairs(self, rows: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield `rows` keys and values, one by one."""
        pairs = list(zip(self.keys, self.values, strict=True))
        whole, rest = divmod(rows, len(pairs))
        for _ in range(whole):
            yield from pairs
        yield from pairs[:rest]

    def write(self, path: Path) -> None:
        """Write the records in the format that `ProduceTopic.java` reads."""
        lines = (b"%s\t%s\n" % pair for pair in zip(self.keys, self.values, strict=True))
        path.write_bytes(b"".join(lines))


@dataclass(frozen=True, slots=True)
class Case:
    """Codec, partitions and number of records of a measurement."""

    codec: str
    partitions: int
    rows: int

    def rows_of(self, way: str) -> int:
        """Return the number of records that this way writes."""
        return self.rows // SLOW.get(way, 1)

    def __str__(self) -> str:
        return f"{self.codec}, {self.partitions}"


def main() -> None:
    arguments = _arguments()
    names = [each.split("-") for each in arguments.cases.split(",")]
    cases = [Case(codec, int(partitions), arguments.rows) for codec, partitions in names]
    records = Records.distinct(min(arguments.rows, DISTINCT))
    rows: list[list[str]] = []
    with broker() as kafka, _java(records) as java:
        for case in cases:
            rows += cells(case, measure(kafka, java, records, case, arguments.runs))
    publish("producers", "tools.benchmarks.produce", table(HEAD, rows), arguments.page)


def measure(
    kafka: LocalKafka, java: JavaProgram, records: Records, case: Case, runs: int = 5
) -> Costs:
    """Run each way. Return the costs of its runs."""
    ways: dict[str, Callable[[str, str, Case], float | None]] = {
        COLUMNS: partial(_send_columns, records.columns(case.rows)),
        ONE_BY_ONE: partial(_send, records),
        CONFLUENT: partial(_confluent, records),
        JAVA: partial(_ask_java, java, {}),
        JAVA_TUNED: partial(_ask_java, java, TUNED),
    }
    if find_spec("kafka") is not None:
        ways[KAFKA_PYTHON] = partial(_kafka_python, records)

    def run(name: str, topic: str) -> float | None:
        return ways[name](kafka.bootstrap_servers, topic, case)

    return metered(
        {name: partial(run, name) for name in ways},
        runs,
        topics=lambda name: new_topic(kafka, case.partitions, case.rows_of(name)),
        client=time.process_time,
        kafka=kafka,
    )


def cells(case: Case, costs: Costs) -> Iterator[list[str]]:
    """Return rows of the table, under `HEAD`. Costs are per record, since the counts differ."""
    shares = {
        name: [type(each)(*(one / case.rows_of(name) for one in each)) for each in runs]
        for name, runs in costs.items()
    }
    for name, runs in shares.items():
        own = [nanoseconds(runs, 1, each) for each in ("client", "broker", "passed")]
        beside = [
            str(ratio(shares, CONFLUENT, name, each)) if name != CONFLUENT else "1"
            for each in ("client", "both", "passed")
        ]
        yield [str(case), name, *own, *beside]


def created_topic(kafka: LocalKafka, partitions: int) -> str:
    """Create a topic, and return its name.

    All leaders answer before the topic is used. A leader that is not ready refuses a partition's
    first batch and may then take the second. Java's producer then retries the first batch in vain
    for two minutes.
    """
    topic = f"written-{next(_numbers)}"
    kafka.create_topic(topic, partitions=partitions)
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
        consumer.end_offsets([TopicPartition(topic, each) for each in range(partitions)])
    return topic


@contextmanager
def new_topic(kafka: LocalKafka, partitions: int, rows: int | None) -> Iterator[str]:
    """Create a topic. At the end, check its number of records, if that is known, and delete it."""
    topic = created_topic(kafka, partitions)
    try:
        yield topic
        found = _count(kafka.bootstrap_servers, topic, partitions)
        assert rows is None or found == rows, f"{found} records of {rows}"
    finally:
        kafka.delete_topic(topic)


def _count(servers: str, topic: str, partitions: int) -> int:
    consumer = ck.Consumer({"bootstrap.servers": servers, "group.id": topic})
    where = [ck.TopicPartition(topic, each) for each in range(partitions)]
    ends = [consumer.get_watermark_offsets(each, _PATIENCE_SECONDS)[1] for each in where]
    consumer.close()
    return sum(ends)


@contextmanager
def _java(records: Records) -> Iterator[JavaProgram]:
    source = Path(__file__).with_name("ProduceTopic.java")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "records")
        records.write(path)
        # With all compilers of the JVM, as on servers.
        with run_java(source, kafka_jars(), str(path), java_options=("-Xmx1g",)) as java:
            yield java


def _send_columns(columns: pa.Table, servers: str, topic: str, case: Case) -> None:
    with KafkaProducer(bootstrap_servers=servers, compression_type=case.codec) as producer:
        future = producer.send_columns(topic, columns)
        future.result(_PATIENCE_SECONDS)


def _send(records: Records, servers: str, topic: str, case: Case) -> None:
    with KafkaProducer(bootstrap_servers=servers, compression_type=case.codec) as producer:
        for key, value in records.pairs(case.rows_of(ONE_BY_ONE)):
            producer.send(topic, value, key=key)


def _confluent(records: Records, servers: str, topic: str, case: Case) -> None:
    producer = ck.Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": case.codec,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 500_000,
        }
    )
    for key, value in records.pairs(case.rows):
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(_PATIENCE_SECONDS) == 0


def _kafka_python(records: Records, servers: str, topic: str, case: Case) -> None:
    producer = import_module("kafka").KafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if case.codec == "none" else case.codec,
        acks="all",
        enable_idempotence=True,
        linger_ms=5,
    )
    for key, value in records.pairs(case.rows_of(KAFKA_PYTHON)):
        producer.send(topic, value=value, key=key)
    producer.close()


def _ask_java(
    java: JavaProgram, tuned: Mapping[str, object], servers: str, topic: str, case: Case
) -> float:
    settings = {"bootstrap.servers": servers, "compression.type": case.codec, **tuned}
    given = " ".join(f"{name}={value}" for name, value in settings.items())
    return int(java.ask(f"{topic} {case.rows} {given}")) / 1e9


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cases", default="none-8,lz4-8,lz4-1", help="codecs and partitions")
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
