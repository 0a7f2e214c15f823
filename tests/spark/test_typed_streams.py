"""Streams of typed values: failing registries, changing schemas, and dead letters."""

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr

from spark_kafka_source.registry import RegistryClient
from spark_kafka_source.registry.cache import MOST_UNKNOWN
from spark_kafka_source.testing import LocalRegistry
from tests.registry.server import Reply, TestRegistry, Then, error, registry_server, schema
from tests.spark.sink.written import to, writer, written
from tests.spark.typed_rows import V1, V2, framed, put, register, typed
from tests.spark_session import Start
from tools.ports import LOOPBACK
from tools.traffic import TIMEOUT_SECONDS, Events, Writer, batch, failure, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.usefixtures("spark")]

NOBODY = f"http://{LOOPBACK}:1"
GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")
READ_AS_V1 = {"value.schema": json.dumps(V1)}
UNAVAILABLE = "not available"


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    """Test registry with the schemas 1 and 2."""
    with registry_server() as known:
        known.on("/schemas/ids/1", schema(json.dumps(V1)))
        known.on("/schemas/ids/2", schema(json.dumps(V2)))
        yield known


class Kept:
    """A sink for `foreachBatch`. It keeps an expression's values, in the order of the offsets."""

    def __init__(self, expression: str = "value") -> None:
        self.rows: list[Any] = []
        self._expression = expression

    def __call__(self, frame: DataFrame, _: int) -> None:
        ordered = frame.orderBy("topic", "partition", "offset")
        self.rows += [_plain(row[0]) for row in ordered.selectExpr(self._expression).collect()]


def _plain(found: Any) -> Any:
    return found.asDict() if isinstance(found, Row) else found


def ran(start: Start, frame: DataFrame, sink: Callable[[DataFrame, int], None]) -> None:
    query = start(frame.writeStream.foreachBatch(sink).trigger(availableNow=True))
    assert query.awaitTermination(TIMEOUT_SECONDS)


class Fault(NamedTuple):
    """A registry's reply (None: no server listens), and the text of the query's error."""

    reply: Reply | None
    text: str
    policy: str = "null"


FAULTS = {
    "refused": Fault(None, UNAVAILABLE),
    "silent": Fault(Reply(raw=b"", then=Then.HANG), UNAVAILABLE),
    "500": Fault(error(500), UNAVAILABLE),
    "500, skipping": Fault(error(500), UNAVAILABLE, "skip"),
    "401": Fault(error(401), "schema.registry.basic.auth.user.info"),
    "403": Fault(error(403), "schema.registry.basic.auth.user.info", "skip"),
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=name, marks=pytest.mark.long if fault.policy == "skip" else ())
        for name, fault in FAULTS.items()
    ],
)
def test_no_row_is_lost_while_a_registry_fails(
    events: Events, registry: TestRegistry, start: Start, fault: Fault
) -> None:
    """A task fails under each policy for bad records. The query later continues at its position."""
    spark = SparkSession.active()
    events.create(1)
    put(events, *framed(1, V1, {"id": 1}), b"{", None)
    options = typed(events, registry.url, badRecords=fault.policy, **READ_AS_V1)
    sink = Kept("value.id")
    ran(start, stream(spark, options), sink)
    sound = [1, None, None] if fault.policy == "null" else [1, None]
    assert sink.rows == sound
    put(events, *framed(2, V2, {"id": 2, "kind": "a"}), *framed(1, V1, {"id": 3}))
    away = options | ({"schema.registry.url": NOBODY} if fault.reply is None else {})
    if fault.text == UNAVAILABLE:  # Only here a short time is right: it is all waited for.
        away["schema.registry.timeout.ms"] = 2_000
    if fault.reply is not None:
        registry.on("/schemas/ids/2", fault.reply)
    writing = stream(spark, away).writeStream.foreachBatch(sink).trigger(availableNow=True)
    assert fault.text in failure(start(writing))
    assert sink.rows == sound
    registry.on("/schemas/ids/2", schema(json.dumps(V2)))
    ran(start, stream(spark, options), sink)
    assert sink.rows == [*sound, 2, 3]


def test_ids_of_garbage_are_no_flood_of_questions(
    spark: SparkSession, events: Events, registry: TestRegistry
) -> None:
    events.create(1)
    unknown = MOST_UNKNOWN + 50
    garbage = [struct.pack(">bi", 0, 1_000 + number % unknown) for number in range(1_400)]
    put(events, *framed(1, V1, {"id": 1}), *garbage, *framed(2, V2, {"id": 2, "kind": "a"}))
    options = typed(events, registry.url, badRecords="null", **READ_AS_V1)
    found = batch(spark, options).selectExpr("offset", "value.id", "value_error.reason")
    # To sort it, Spark would read the topic twice.
    rows = sorted(found.collect())
    assert [row.id for row in rows] == [1, *[None] * 1_400, 2]
    asked = registry.paths()
    assert len(asked) == len(set(asked)) == 2 + unknown


@pytest.mark.registry
def test_a_schema_evolves_while_a_stream_runs(
    events: Events, real_registry: LocalRegistry, client: RegistryClient, start: Start
) -> None:
    """A running stream keeps its columns. After a restart it has the new one, and no row twice."""
    spark = SparkSession.active()
    events.create(1)
    first = register(client, events, V1)
    put(events, *framed(first, V1, {"id": 1}))
    sink = Kept()
    options = typed(events, real_registry.url)
    query = start(stream(spark, options).writeStream.foreachBatch(sink))
    wait_until(lambda: sink.rows, query)
    second = register(client, events, V2)
    put(events, *framed(second, V2, {"id": 2, "kind": "new"}), *framed(first, V1, {"id": 3}), None)
    query.processAllAvailable()
    assert sink.rows == [{"id": 1}, {"id": 2}, {"id": 3}, None]
    query.stop()
    put(events, *framed(second, V2, {"id": 4, "kind": "newer"}), *framed(first, V1, {"id": 5}))
    again = Kept()
    ran(start, stream(spark, options), again)
    assert again.rows == [{"id": 4, "kind": "newer"}, {"id": 5, "kind": "none"}]


def test_two_topics_whose_rows_have_two_schemas(
    events: Events, registry: TestRegistry, start: Start
) -> None:
    spark = SparkSession.active()
    other = events.another("other")
    for number, topic in enumerate((events, other)):
        topic.create(1)
        put(topic, *framed(1, V1, {"id": number}), *framed(2, V2, {"id": number, "kind": "a"}))
    both = typed(events, registry.url, subscribe=f"{events.name},{other.name}")
    sink = Kept("struct(topic, value.id, value.kind)")
    ran(start, stream(spark, both | {"value.schema": json.dumps(V2)}), sink)
    assert sorted((row["topic"], row["id"], row["kind"]) for row in sink.rows) == [
        (events.name, 0, "a"),
        (events.name, 0, "none"),
        (other.name, 1, "a"),
        (other.name, 1, "none"),
    ]
    assert registry.paths().count("/schemas/ids/1") <= 2


def test_a_schema_named_in_a_header(
    spark: SparkSession, events: Events, registry: TestRegistry
) -> None:
    """The header wins over the prefix in the value. The column `headers` has all headers."""
    events.create(1)
    registry.on(f"/schemas/guids/{GUID}", schema(json.dumps(V2), guid=str(GUID)))
    named = ("__value_schema_id", b"\1" + GUID.bytes)
    (prefixed,) = framed(1, V1, {"id": 1})
    (bare,) = (each[5:] for each in framed(2, V2, {"id": 2, "kind": "by header"}))
    with Writer(events.kafka.bootstrap_servers) as writer:
        writer.queue(events.name, prefixed, headers=[("trace", b"x")])
        writer.queue(events.name, bare, headers=[("trace", None), named])
        writer.queue(events.name, prefixed, headers=[named])
        writer.queue(events.name, None, headers=[named])
    given = {"value.schema": json.dumps(V2), "badRecords": "null", "includeHeaders": "true"}
    rows = batch(spark, typed(events, registry.url, **given)).orderBy("offset").collect()
    assert [row.value and row.value.asDict() for row in rows] == [
        {"id": 1, "kind": "none"},
        {"id": 2, "kind": "by header"},
        None,
        None,
    ]
    assert [row.value_error is None for row in rows] == [True, True, False, True]
    assert bytes(rows[2].value_error.bytes) == prefixed
    found = [[(each.key, each.value and bytes(each.value)) for each in row.headers] for row in rows]
    assert found == [[("trace", b"x")], [("trace", None), named], [named], [named]]


def test_only_some_fields_of_nested_structs_are_read(
    spark: SparkSession, events: Events, registry: TestRegistry
) -> None:
    """An unwanted field needs no column, so its type may have no column type."""
    inner = {"type": "record", "name": "Inner", "fields": [*V2["fields"], _field("up", "Outer")]}
    fields = [_field("inner", ["null", inner]), _field("more", "bytes")]
    outer = {"type": "record", "name": "Outer", "fields": fields}
    registry.on("/schemas/ids/3", schema(json.dumps(outer)))
    events.create(1)
    end = {"inner": None, "more": b"end"}
    row = {"inner": {"id": 7, "kind": "x", "up": end}, "more": b"much"}
    put(events, *framed(3, outer, row, end))
    options = typed(events, registry.url, **{"value.schema.id": 3, "value.fields": "inner.id"})
    found = batch(spark, options)
    assert found.schema["value"].dataType.simpleString() == "struct<inner:struct<id:bigint>>"
    ids = [row[0] for row in found.orderBy("offset").select(expr("value.inner.id")).collect()]
    assert ids == [7, None]


def _field(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": kind}


def test_dead_letters_are_written_as_they_came(
    events: Events, registry: TestRegistry, start: Start
) -> None:
    """All bytes of a record with a bad key or value go to another topic, in the same query."""
    spark = SparkSession.active()
    letters = events.another("letters")
    letters.create(1)
    events.create(1)
    (good,) = framed(1, V1, {"id": 1})
    bad = [good + b"!", good[:-1], b"", b"\0", b'{"id": 1}', bytes(range(256)) * 40]
    put(events, good, *bad, None)
    with Writer(events.kafka.bootstrap_servers) as queue:
        queue.queue(events.name, good, key=b"\xff\xfe")
        queue.queue(events.name, bad[0], key=b"key")
    seen: list[int] = []

    def split(frame: DataFrame, _: int) -> None:
        frame.persist()
        is_bad = "key_error IS NOT NULL OR value_error IS NOT NULL"
        seen.extend(row[0] for row in frame.where(f"NOT ({is_bad})").select("offset").collect())
        whole = (
            frame.where(is_bad)
            .orderBy("offset")
            .selectExpr(
                "coalesce(key_error.bytes, CAST(key AS BINARY)) AS key",
                "coalesce(value_error.bytes, CAST('sound' AS BINARY)) AS value",
            )
        )
        writer(whole.coalesce(1), to(letters)).save()
        frame.unpersist()

    options = typed(events, registry.url, badRecords="null", **READ_AS_V1)
    ran(start, stream(spark, options | {"key.format": "string"}), split)
    assert seen == [0, 7]
    assert [(each.key, each.value) for each in written(letters)] == [
        *((None, each) for each in bad),
        (b"\xff\xfe", b"sound"),
        (b"key", bad[0]),
    ]
