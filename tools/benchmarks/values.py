"""Cost of a value on one core, to columns and back: `python -m tools.benchmarks.values`.

Prints nanoseconds of the thread's CPU time per record: the least of all rounds, and the median in
brackets. A record has 11 fields in some 150 bytes. The program decodes contiguous bytes into a
validated Arrow struct, and encodes them again. The cases are: several batch sizes; two writers,
half of the rows each; one bad row in a hundred; and for Protobuf (`--format protobuf`) a field that
the reader's schema lacks, one row in a hundred with its first field at its end, and one that is cut
off in its last field. Pin the program to a core: `taskset -c 1`. `--page` writes the table into a
page.
"""

import argparse
import gc
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from spark_kafka_source.values import Encoded, SchemaText, SchemaType
from spark_kafka_source.values.avro import ReaderSchema, decode, encode, fit, parse_schema, resolve
from spark_kafka_source.values.protobuf import ProtobufReader, ProtobufWriter
from spark_kafka_source.values.protobuf.text import compiled
from tests.values.avro_oracle import laid, written
from tests.values.avro_schemas import logical
from tests.values.engines import using
from tools.benchmarks.page import add_page, publish, table

ADDRESS = {
    "type": "record",
    "name": "Address",
    "fields": [
        *({"name": name, "type": "string"} for name in ("street", "city", "zip")),
        *({"name": name, "type": "double"} for name in ("lat", "lon")),
    ],
}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "user", "type": "string"},
    {"name": "at", "type": logical("long", "timestamp-micros")},
    {"name": "price", "type": "double"},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["VIEW", "CART"]}},
    {"name": "count", "type": "int"},
    {"name": "first", "type": "boolean"},
    {"name": "referrer", "type": ["null", "string"]},
    {"name": "address", "type": ["null", ADDRESS]},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "amount", "type": logical("bytes", "decimal", precision=10, scale=2)},
]
SCHEMA = {"type": "record", "name": "Event", "fields": FIELDS}
OLDER = {**SCHEMA, "fields": [*FIELDS[5:], {"name": "older", "type": "string"}, *FIELDS[:5]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--format", choices=("avro", "protobuf"), default="avro")
    add_page(parser)
    options = parser.parse_args()
    cases = (_cases if options.format == "avro" else _protobuf_cases)(options.rows)
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(options.rounds + 1):
        for name, (rows, run) in cases.items():
            for engine in ENGINES:
                gc.collect()
                with using(engine):
                    times = max(options.rows // rows, 1)
                    took[engine, name].append(_seconds(run, times) / times / rows * 1e9)
    lines = [[name, *(_shown(took[engine, name][1:]) for engine in ENGINES)] for name in cases]
    head = ("record", *(f"{label}, ns" for label in ENGINES.values()))
    command = f"tools.benchmarks.values --format {options.format}"
    publish(f"typed-{options.format}", command, table(head, lines), options.page)


def _shown(found: list[float]) -> str:
    return f"{min(found):.0f} ({median(found):.0f})"


ENGINES = {"plain": "plain", "compiled": "fast"}


def _seconds(run: Callable[[], object], times: int) -> float:
    started = time.thread_time()
    for _ in range(times):
        run()
    return time.thread_time() - started


def _cases(rows: int) -> Mapping[str, tuple[int, Callable[[], object]]]:
    """Return by case its number of rows, and the function that decodes them."""
    chance = random.Random(1)
    values = [event(number, chance) for number in range(rows)]
    one, other = written(SCHEMA, values), written(OLDER, [each | {"older": "x"} for each in values])
    schema = parse_schema(json.dumps(SCHEMA))
    reader = ReaderSchema.of(schema)
    few = ReaderSchema.of(schema, ["id", "at", "price"])
    same, older = (resolve(parse_schema(json.dumps(each)), reader) for each in (SCHEMA, OLDER))
    wanted = resolve(schema, few)
    half = np.arange(rows) % 2
    mixed = laid([(one, other)[n % 2][n] for n in range(rows)], b"\0\0\0\0\1")
    bad = laid([b"\xff" + row if not n % 100 else row for n, row in enumerate(one)])
    array = decode(reader.layout, [same], Encoded(*laid(one))).array
    plan = fit(reader.schema, array.type)
    whole, hundred, thousand = laid(one), laid(one[:100]), laid(one[:1000])
    return {
        f"{len(whole[0]) // rows - 2} B, 11 fields": (
            rows,
            lambda: decode(reader.layout, [same], Encoded(*whole)),
        ),
        "3 fields of it": (rows, lambda: decode(few.layout, [wanted], Encoded(*whole))),
        "two writers": (
            rows,
            lambda: decode(reader.layout, [same, older], Encoded(*mixed, program_of=half)),
        ),
        "one of a hundred bad": (rows, lambda: decode(reader.layout, [same], Encoded(*bad))),
        "encoded": (rows, lambda: encode(plan, array)),
        "in batches of 1,000": (1000, lambda: decode(reader.layout, [same], Encoded(*thousand))),
        "in batches of 100": (100, lambda: decode(reader.layout, [same], Encoded(*hundred))),
    }


PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Event {
  int64 id = 1;
  string user = 2;
  google.protobuf.Timestamp at = 3;
  double price = 4;
  Kind kind = 5;
  int32 count = 6;
  bool first = 7;
  optional string referrer = 8;
  Address address = 9;
  repeated string tags = 10;
  bytes amount = 11;
}
message Address {
  string street = 1;
  string city = 2;
  string zip = 3;
  double lat = 4;
  double lon = 5;
}
enum Kind { VIEW = 0; CART = 1; }
"""


def _protobuf_cases(rows: int) -> Mapping[str, tuple[int, Callable[[], object]]]:
    """Return the cases of Protobuf. The other writer has one more field, which is not read."""
    text = SchemaText(SchemaType.PROTOBUF, PROTO)
    more_fields = PROTO.replace("bytes amount", "string older = 12; bytes amount")
    older = SchemaText(SchemaType.PROTOBUF, more_fields)
    reader, few = ProtobufReader(text), ProtobufReader(text, fields=["id", "at", "price"])
    one, other = messages(text, rows), messages(older, rows, older="x")
    same, wanted, more = reader.program(), few.program(text), reader.program(older)
    half = np.arange(rows) % 2
    mixed = laid([(one, other)[n % 2][n] for n in range(rows)], b"\0\0\0\0\1\0")
    unknown = laid(other)
    bad = laid([b"\xff" + row if not n % 100 else row for n, row in enumerate(one)])
    odd = laid([row[7:] + row[:7] if not n % 100 else row for n, row in enumerate(one)])
    cut = laid([row[:-1] if not n % 100 else row for n, row in enumerate(one)])
    assert not reader.decode([same], Encoded(*odd)).status.any(), "the id takes seven bytes"
    whole, hundred, thousand = laid(one), laid(one[:100]), laid(one[:1000])
    array, writer = reader.decode([same], Encoded(*whole)).array, ProtobufWriter(text)
    size = len(whole[0]) // rows - 2
    return {
        f"{size} B, 11 fields": (rows, lambda: reader.decode([same], Encoded(*whole))),
        "3 fields of it": (rows, lambda: few.decode([wanted], Encoded(*whole))),
        "two writers": (
            rows,
            lambda: reader.decode([same, more], Encoded(*mixed, program_of=half)),
        ),
        "an unknown field in each": (rows, lambda: reader.decode([same], Encoded(*unknown))),
        "one of a hundred bad": (rows, lambda: reader.decode([same], Encoded(*bad))),
        "one of a hundred out of order": (rows, lambda: reader.decode([same], Encoded(*odd))),
        "one of a hundred cut off": (rows, lambda: reader.decode([same], Encoded(*cut))),
        "in batches of 1,000": (1000, lambda: reader.decode([same], Encoded(*thousand))),
        "in batches of 100": (100, lambda: reader.decode([same], Encoded(*hundred))),
        "encoded": (rows, lambda: writer.encode(array, b"")),
    }


def message_class(text: SchemaText) -> Any:
    """Return Google's class of the events."""
    pool = descriptor_pool.DescriptorPool()
    for file in FileDescriptorSet.FromString(compiled(text)).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Event"))


@cache
def _event_class() -> Any:
    return message_class(SchemaText(SchemaType.PROTOBUF, PROTO))


def by_upb(data: bytes) -> dict[str, Any]:
    """Convert an event to a dict, as a user writes it by hand without a function of Spark."""
    message = _event_class().FromString(data)
    plain = ("id", "user", "price", "kind", "count", "first", "referrer", "amount")
    inner = ("street", "city", "zip", "lat", "lon")
    found = {name: getattr(message, name) for name in plain}
    found["at"] = message.at.ToMicroseconds()
    found["tags"] = list(message.tags)
    found["address"] = {name: getattr(message.address, name) for name in inner}
    return found


def messages(text: SchemaText, rows: int, **more: str) -> list[bytes]:
    event_class = message_class(text)
    chance = random.Random(1)
    values = []
    for number in range(rows):
        value = event(number, chance) | more
        micros = value.pop("at")
        message = event_class(**{name: each for name, each in value.items() if each is not None})
        message.at.seconds, message.at.nanos = micros // 10**6, micros % 10**6 * 1000
        values.append(message.SerializeToString())
    return values


def event(number: int, chance: random.Random) -> dict[str, Any]:
    place = {
        "street": f"{chance.randrange(999)} Rue de l'Hôpital",
        "city": "La Chaux-de-Fonds (Neuchâtel)",
    }
    return {
        "id": (1 << 40) + number,
        "user": f"user-{chance.randrange(100_000)}@example.com",
        "at": 1_700_000_000_000_000 + 1000 * number,
        "price": chance.random(),
        "kind": chance.choice(["VIEW", "CART"]),
        "count": chance.randrange(500),
        "first": chance.random() < 0.5,
        "referrer": chance.choice([None, "https://example.com/a"]),
        "address": place | {"zip": "2000", "lat": chance.random(), "lon": chance.random()}
        if chance.random() < 0.9
        else None,
        "tags": [f"tag-{n}" for n in range(chance.randrange(5))],
        "amount": chance.randrange(10**8).to_bytes(5),
    }


if __name__ == "__main__":
    main()
