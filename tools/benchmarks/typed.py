"""Cost of typed values through Spark, against Spark's own functions.

    python -m tools.benchmarks.typed [--only typed-reading,typed-mixed,typed-writing] [--rows N]
                                     [--runs N] [--page FILE]

*typed-reading*: reads the values of an Avro, JSON or Protobuf topic into the noop sink: by the peer
with Spark's function, by this source with Spark's function, and typed, without and with the extra
`fast`. There is no jar of Spark's `from_protobuf`. A Python function with google.protobuf replaces
it. *typed-mixed*: the same with two writers' schemas, half of the rows each, and with one bad value
in a hundred. It prints parts of the speed without these. *typed-writing*: writes a cached DataFrame
as Avro, by each sink with `to_avro`, and typed by this project's sink. *typed-profile*: the
processor time per row, by process, for reading and writing Avro.
"""

import argparse
import base64
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.functions import col, expr, from_json, udf

from spark_kafka_source import KafkaProducer
from spark_kafka_source.testing import LocalKafka, LocalRegistry
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.protobuf.text import compiled
from tests.spark.typed_rows import framed, registers
from tools.benchmarks.interleaved import Ratio, Seconds, interleaved, medians
from tools.benchmarks.page import add_page, publish, table
from tools.benchmarks.processors import by_process
from tools.benchmarks.produce import new_topic
from tools.benchmarks.session import broker, session
from tools.benchmarks.sources import BATCH_ROWS, CEILING_OF_FILE, FAST, PEER, PLAIN
from tools.benchmarks.values import OLDER, PROTO, SCHEMA, by_upb, event, messages

OURS = "pykafka"
FUNCTION, OURS_FUNCTION, TYPED, TYPED_FAST = "peer", "ours + function", "typed", "typed, fast"
READING_HEAD = (
    "values", "peer + function s", "ours + function s", "plain s", "fast s", "plain x", "fast x",
    "plain x function", "fast x function",
)  # fmt: skip
MIXED_HEAD = ("values", "plain s", "fast s", "plain, part of", "fast, part of")
PROFILE_HEAD = ("way", "broker ns", "JVM ns", "workers ns", "sum ns", "passed ns")
WRITING_HEAD = ("values", "peer + to_avro s", "ours + to_avro s", "typed s", "x", "x function")

_PARTITIONS = 4
_ROWS_AT_A_TIME = 10_000
# The jar for 4.2.0 is not available. This jar runs on 4.2.0.
_AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
_NESTED = """id BIGINT, user STRING, at BIGINT, price DOUBLE, kind STRING, count INT, first BOOLEAN,
    referrer STRING, address STRUCT<street: STRING, city: STRING, zip: STRING, lat: DOUBLE,
    lon: DOUBLE>, tags ARRAY<STRING>, amount DOUBLE"""
_FLAT = """id BIGINT, user STRING, action STRING, amount DOUBLE, at BIGINT, first BOOLEAN,
    note STRING"""

_PROTOBUF_DDL = """STRUCT<id: BIGINT, user: STRING, price: DOUBLE, kind: BIGINT,
    count: BIGINT, first: BOOLEAN, referrer: STRING, amount: BINARY, at: BIGINT,
    tags: ARRAY<STRING>, address: STRUCT<street: STRING, city: STRING, zip: STRING, lat: DOUBLE,
    lon: DOUBLE>>"""
_STRUCT = """named_struct(
    'id', id,
    'user', concat('user-', pmod(hash(id), 100000), '@example.com'),
    'at', timestamp_micros(1700000000000000 + id),
    'price', pmod(hash(id, 1), 1000000) / 1e6,
    'kind', element_at(array('VIEW', 'CART'), cast(1 + pmod(id, 2) AS INT)),
    'count', cast(pmod(id, 500) AS INT),
    'first', pmod(id, 3) = 0,
    'referrer', if(pmod(id, 2) = 0, NULL, 'https://example.com/a'),
    'address', named_struct(
        'street', concat(pmod(id, 999), " Rue de l'Hôpital"),
        'city', 'La Chaux-de-Fonds (Neuchâtel)', 'zip', '2000',
        'lat', pmod(hash(id, 2), 1000000) / 1e6, 'lon', pmod(hash(id, 3), 1000000) / 1e6),
    'tags', slice(array('tag-0', 'tag-1', 'tag-2', 'tag-3'), 1, cast(pmod(id, 5) AS INT)),
    'amount', cast(pmod(hash(id, 4), 100000000) / 100 AS DECIMAL(10, 2)))"""

Values = Sequence[bytes]
Way = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Case:
    """Values of one kind, the options to read them typed, and Spark's function for them."""

    name: str
    values: Values
    options: Mapping[str, str]
    function: Column


@dataclass(frozen=True, slots=True)
class Bench:
    """Session, broker and registry of all cases, and the numbers of rows and runs."""

    spark: SparkSession
    kafka: LocalKafka
    registry: LocalRegistry
    rows: int
    runs: int

    def register(self, subject: str, schema: object) -> int:
        """Register an Avro schema. Return its id."""
        text = SchemaText(SchemaType.AVRO, json.dumps(schema))
        with closing(registers(self.registry)) as client:
            return client.register(subject, text)


def main() -> None:
    arguments = _arguments()
    spark = session(more_jars=(_AVRO,))
    with broker() as kafka, LocalRegistry() as registry:
        bench = Bench(spark, kafka, registry, arguments.rows, arguments.runs)
        for name in arguments.only.split(","):
            lines = _SECTIONS[name](bench)
            publish(name, f"tools.benchmarks.typed --only {name}", lines, arguments.page)
    spark.stop()


# -- reading ---------------------------------------------------------------------------------------


def _reading(bench: Bench) -> Iterator[str]:
    cases = [_avro(bench), _flat(), _nested(), _protobuf()]
    yield from table(READING_HEAD, [_cells(case, _read(bench, case)) for case in cases])


def _cells(case: Case, seconds: Seconds) -> Iterator[str]:
    size = sum(map(len, case.values)) // len(case.values)
    yield f"{case.name}, {size} B"
    found = medians(seconds)
    for name in (FUNCTION, OURS_FUNCTION, TYPED, TYPED_FAST):
        yield f"{found[name]:.2f}"
    for other in (FUNCTION, OURS_FUNCTION):
        for name in (TYPED, TYPED_FAST):
            yield str(Ratio.of(seconds, other, name))


def _read(bench: Bench, case: Case) -> Seconds:
    with new_topic(bench.kafka, _PARTITIONS, None) as topic:
        fill(bench, topic, case.values)
        return interleaved(_ways(bench, case, topic), bench.runs)


def _ways(bench: Bench, case: Case, topic: str) -> Mapping[str, Way]:
    plain = {
        "kafka.bootstrap.servers": bench.kafka.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    typed = plain | dict(case.options)

    def read(
        source: str, options: Mapping[str, str], decode: Callable[[DataFrame], DataFrame]
    ) -> None:
        decode(bench.spark.read.format(source).options(**options).load()).write.format("noop").mode(
            "overwrite"
        ).save()

    def by_function(rows: DataFrame) -> DataFrame:
        return rows.select(case.function.alias("value"))

    def as_it_is(rows: DataFrame) -> DataFrame:
        return rows.select("value")

    return {
        TYPED: partial(read, PLAIN, typed, as_it_is),
        TYPED_FAST: partial(read, FAST, typed, as_it_is),
        FUNCTION: partial(read, PEER, plain, by_function),
        OURS_FUNCTION: partial(read, FAST, plain, by_function),
    }


def fill(bench: Bench, topic: str, values: Values) -> None:
    """Write the bench's number of records evenly over the partitions, with lz4."""
    array = pa.array(values, pa.binary())
    partition = pa.array([n % _PARTITIONS for n in range(len(values))], pa.int32())
    piece = pa.RecordBatch.from_pydict({"value": array, "partition": partition})
    with KafkaProducer(
        bootstrap_servers=bench.kafka.bootstrap_servers,
        compression_type="lz4",
        linger_ms=50,
        batch_size=256 * 1024,
    ) as producer:
        written = [producer.send_columns(topic, piece) for _ in range(0, bench.rows, len(values))]
        for each in written:
            each.result()


# -- values ----------------------------------------------------------------------------------------


def _avro(bench: Bench) -> Case:
    """Return the case of records with 11 fields, framed like a registry's serializer."""
    schema_id = bench.register("events", SCHEMA)
    return Case(
        "Avro",
        framed(schema_id, SCHEMA, *_events()),
        {
            "value.format": "avro",
            "value.schema.id": f"{schema_id}",
            "schema.registry.url": bench.registry.url,
        },
        from_avro(expr("substring(value, 6)"), json.dumps(SCHEMA)),
    )


def _flat() -> Case:
    chance = random.Random(1)
    rows = (
        {
            "id": (1 << 40) + number,
            "user": f"user-{chance.randrange(100_000)}",
            "action": chance.choice(("click", "view", "buy")),
            "amount": chance.randrange(10_000) / 100,
            "at": 1_700_000_000_000 + number,
            "first": chance.random() < 0.5,
            "note": f"{chance.randrange(1 << 80):022x}",
        }
        for number in range(_ROWS_AT_A_TIME)
    )
    return _json("JSON, flat", _FLAT, rows)


def _nested() -> Case:
    rows = (row | {"amount": int.from_bytes(row["amount"]) / 100} for row in _events())
    return _json("JSON, nested", _NESTED, rows)


def _json(name: str, ddl: str, rows: Iterable[Mapping[str, object]]) -> Case:
    return Case(
        name,
        [json.dumps(row).encode() for row in rows],
        {"value.format": "json", "value.schema": ddl},
        from_json(col("value").cast("string"), ddl),
    )


def _protobuf() -> Case:
    """Return the case of Avro's records as Protobuf, without a registry's prefix."""
    text = SchemaText(SchemaType.PROTOBUF, PROTO)
    options = {
        "value.format": "protobuf",
        "value.schema": base64.b64encode(compiled(text)).decode(),
        "value.message": "Event",
    }
    function = udf(by_upb, _PROTOBUF_DDL)(col("value"))
    return Case("Protobuf", messages(text, _ROWS_AT_A_TIME), options, function)


def _events() -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    return (event(number, chance) for number in range(_ROWS_AT_A_TIME))


# -- mixed -----------------------------------------------------------------------------------------


def _mixed(bench: Bench) -> Iterator[str]:
    avro, flat = (
        replace(each, options={**each.options, "badRecords": "null"})
        for each in (_avro(bench), _flat())
    )
    found = [
        _part(bench, avro, _two_writers(bench, avro)),
        _part(bench, avro, _bad(avro)),
        _part(bench, flat, _bad(flat)),
    ]
    yield from table(MIXED_HEAD, found)


def _two_writers(bench: Bench, case: Case) -> Case:
    older_id = bench.register("older-events", OLDER)
    older = framed(older_id, OLDER, *(each | {"older": "x"} for each in _events()))
    values = [(case.values, older)[n // _PARTITIONS % 2][n] for n in range(len(older))]
    return replace(case, name=f"{case.name}, two writers", values=values)


def _bad(case: Case) -> Case:
    """Return the case with one truncated value in a hundred."""
    values = [each[:-9] if not n % 100 else each for n, each in enumerate(case.values)]
    return replace(case, name=f"{case.name}, one of a hundred bad", values=values)


def _part(bench: Bench, whole: Case, part: Case) -> list[str]:
    """Compare the speed of `part` with the speed of `whole`."""
    names = [(case, way) for case in (whole, part) for way in (TYPED, TYPED_FAST)]
    with new_topic(bench.kafka, _PARTITIONS, None) as first:
        fill(bench, first, whole.values)
        with new_topic(bench.kafka, _PARTITIONS, None) as second:
            fill(bench, second, part.values)
            topics = {whole.name: first, part.name: second}
            ways = {
                f"{case.name} {way}": _ways(bench, case, topics[case.name])[way]
                for case, way in names
            }
            seconds = interleaved(ways, bench.runs)
    took = [f"{medians(seconds)[f'{part.name} {way}']:.2f}" for way in (TYPED, TYPED_FAST)]
    parts = [
        str(Ratio.of(seconds, f"{whole.name} {way}", f"{part.name} {way}"))
        for way in (TYPED, TYPED_FAST)
    ]
    return [part.name, *took, *parts]


# -- writing ---------------------------------------------------------------------------------------


def _writing(bench: Bench) -> Iterator[str]:
    ways = _writing_ways(bench)
    seconds = interleaved(ways, bench.runs)
    found = medians(seconds)
    yield from table(
        WRITING_HEAD,
        [
            [
                "Avro",
                *(f"{found[name]:.2f}" for name in ways),
                *(str(Ratio.of(seconds, name, TYPED)) for name in (FUNCTION, OURS_FUNCTION)),
            ]
        ],
    )


def _writing_ways(bench: Bench) -> Mapping[str, Callable[[], float]]:
    rows = bench.spark.range(0, bench.rows, 1, _PARTITIONS).select(expr(_STRUCT).alias("value"))
    rows.persist().count()
    plain = {
        "kafka.bootstrap.servers": bench.kafka.bootstrap_servers,
        "kafka.compression.type": "lz4",
    }
    typed = plain | {
        "value.format": "avro",
        "schema.registry.url": bench.registry.url,
        "auto.register.schemas": "true",
    }

    def write(source: str, options: Mapping[str, str], frame: DataFrame) -> float:
        with new_topic(bench.kafka, _PARTITIONS, bench.rows) as topic:
            writing = frame.write.format(source).options(**options, topic=topic).mode("append")
            began_seconds = time.perf_counter()
            writing.save()
            return time.perf_counter() - began_seconds

    by_function = rows.select(to_avro("value").alias("value"))
    return {
        FUNCTION: partial(write, PEER, plain, by_function),
        OURS_FUNCTION: partial(write, OURS, plain, by_function),
        TYPED: partial(write, OURS, typed, rows),
    }


# -- profile ---------------------------------------------------------------------------------------


def _profile(bench: Bench) -> Iterator[str]:
    case = _avro(bench)
    with (
        TemporaryDirectory() as directory,
        new_topic(bench.kafka, _PARTITIONS, None) as topic,
        new_topic(bench.kafka, _PARTITIONS, None) as empty,
    ):
        fill(bench, topic, case.values)
        reading = dict(_ways(bench, case, topic))
        no_rows = _ways(bench, case, empty)
        reading["no rows, peer"], reading["no rows, typed"] = no_rows[FUNCTION], no_rows[TYPED]
        reading["ready-made"] = _ready_made(bench, case, topic, Path(directory, "batch.arrow"))
        found = {f"read: {name}": each for name, each in _by_process(bench, reading).items()}
    writing = _by_process(bench, _writing_ways(bench))
    found |= {f"written: {name}": each for name, each in writing.items()}
    yield from table(PROFILE_HEAD, [[name, *each] for name, each in found.items()])


def _by_process(bench: Bench, ways: Mapping[str, Callable[[], object]]) -> Mapping[str, list[str]]:
    found = by_process(bench.spark, bench.kafka, ways, bench.rows, bench.runs)
    return {name: [f"{one:.0f}" for one in each] for name, each in found.items()}


def _ready_made(bench: Bench, case: Case, topic: str, path: Path) -> Way:
    """Return a way that reads as many decoded rows from a file, without Kafka or Avro."""
    options = {"kafka.bootstrap.servers": bench.kafka.bootstrap_servers, "subscribe": topic}
    options |= {"startingOffsets": "earliest", **case.options}
    rows = bench.spark.read.format(PLAIN).options(**options).load().select("value")
    decoded = rows.limit(BATCH_ROWS).toArrow().combine_chunks()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, decoded.schema) as writer:
        writer.write_table(decoded)
    ready = bench.spark.read.format(CEILING_OF_FILE)
    ready = ready.options(file=str(path), rows=bench.rows, partitions=_PARTITIONS)
    return lambda: ready.load().write.format("noop").mode("overwrite").save()


_SECTIONS: Mapping[str, Callable[[Bench], Iterator[str]]] = {
    "typed-reading": _reading,
    "typed-mixed": _mixed,
    "typed-writing": _writing,
    "typed-profile": _profile,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(_SECTIONS))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
