"""Typed keys and values through Spark, with a real broker and a real schema registry."""

import re
import struct
from contextlib import closing

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source import KafkaError, encode
from spark_kafka_source.registry import RegistryClient
from spark_kafka_source.testing import LocalRegistry
from spark_kafka_source.values import SchemaText, SchemaType
from tests.spark.sink.written import to, written
from tests.spark.typed_rows import V1, V2, framed, put, register, registers, typed
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, batch, failure, stream

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.registry,
    pytest.mark.usefixtures("spark"),
]


def test_what_is_written_is_read_again_with_the_types_that_it_had(
    spark: SparkSession, events: Events, real_registry: LocalRegistry
) -> None:
    events.create(2)
    frame = spark.range(20).selectExpr(
        "CAST(id AS STRING) AS key",
        """IF(id = 3, NULL, named_struct(
            'id', id, 'small', CAST(id AS INT), 'name', IF(id % 2 = 0, NULL, CONCAT('n', id)),
            'at', timestamp_micros(id * 1000001),
            'day', date_add(DATE'2026-01-01', CAST(id AS INT)),
            'amount', CAST(id AS DECIMAL(12, 3)), 'share', id / 3, 'ok', id > 5,
            'tags', array('a', NULL), 'by_name', map('x', named_struct('y', id)))) AS value""",
    )
    options = to(events, **{"value.format": "avro", "schema.registry.url": real_registry.url})
    with pytest.raises(PySparkException, match="does not have the schema of the rows"):
        frame.write.format("pykafka").mode("append").options(**options).save()
    assert written(events) == []
    options |= {"auto.register.schemas": "true"}
    frame.write.format("pykafka").mode("append").options(**options).save()
    found = batch(spark, typed(events, real_registry.url, **{"key.format": "string"}))
    assert found.schema["key"].dataType.simpleString() == "string"
    as_text = "to_json(struct(key, value))"
    assert _texts(found, as_text) == _texts(frame, as_text)
    assert found.where("value IS NULL").count() == 1


def test_ids_of_apicurios_own_serializers_are_read(
    spark: SparkSession, events: Events, real_registry: LocalRegistry
) -> None:
    events.create(1)
    with closing(registers(real_registry)) as client:
        number = register(client, events, V1)
    put(events, b"\0" + number.to_bytes(8, "big") + b"\x0e")
    options = typed(events, real_registry.url, **{"value.framing": "apicurio.contentId"})
    assert [row.id for row in batch(spark, options).select("value.*").collect()] == [7]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Option 'value.format': is missing"),
        ({"value.formt": "avro"}, "Did you mean 'value.format'?"),
        ({"key.format": "json"}, "There is no column 'key', which 'key.format' is for"),
        (
            {"value.format": "avro", "kafka.acks": 1},
            "Option 'kafka.acks': is no option of 'encode'",
        ),
        (
            {"key.format": "json", "value.recordName": "R"},
            "Option 'value.recordName': has no effect where 'value.format' is 'binary'",
        ),
    ],
)
def test_an_option_that_encode_cannot_use_is_an_error(
    spark: SparkSession, options: dict[str, object], said: str
) -> None:
    with pytest.raises(KafkaError, match=re.escape(said)):
        encode(spark.sql("SELECT named_struct('id', 1) AS value"), options)


def _texts(frame: DataFrame, expression: str) -> list[str]:
    return sorted(row[0] for row in frame.selectExpr(expression).collect())


def test_a_schema_that_comes_after_load_changes_no_column(
    events: Events, real_registry: LocalRegistry, client: RegistryClient, start: Start
) -> None:
    spark = SparkSession.active()
    events.create(1)
    first = register(client, events, V1)
    put(events, *framed(first, V1, {"id": 1}))
    frame = stream(spark, typed(events, real_registry.url))
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint>"
    second = register(client, events, V2)
    put(events, *framed(second, V2, {"id": 2, "kind": "new"}), *framed(first, V1, {"id": 3}))
    rows: list[int] = []

    def keep(micro_batch: DataFrame, _: int) -> None:
        rows.extend(row.id for row in micro_batch.select("value.*").collect())

    query = start(frame.writeStream.foreachBatch(keep).trigger(availableNow=True))
    assert query.awaitTermination(TIMEOUT_SECONDS)
    assert rows == [1, 2, 3]
    newer = batch(spark, typed(events, real_registry.url))
    assert _texts(newer, "value.kind") == ["new", "none", "none"]


def test_bad_records_are_dead_letters_or_left_out_or_an_error(
    events: Events, real_registry: LocalRegistry, client: RegistryClient, start: Start
) -> None:
    spark = SparkSession.active()
    events.create(1)
    schema_id = register(client, events, V1)
    (good,) = framed(schema_id, V1, {"id": 7})
    bad = [good + b"!", b"{}", struct.pack(">bi", 0, 1_000_000) + b"x", b""]
    put(events, good, *bad, None)
    found = batch(spark, typed(events, real_registry.url, badRecords="null"))
    letters = found.where("value_error IS NOT NULL").orderBy("offset").collect()
    assert [bytes(row.value_error.bytes) for row in letters] == bad
    assert [row.value_error.schema_id for row in letters] == [schema_id, None, 1_000_000, None]
    assert [row.value_error.reason for row in letters] == [
        "there are bytes after the record",
        "no schema id, found 7b",
        "the registry has no schema 1000000",
        "no schema id, found only 0 bytes",
    ]
    sound = found.where("value_error IS NULL").orderBy("offset").collect()
    assert [row.value and row.value.id for row in sound] == [7, None]
    skipping = batch(spark, typed(events, real_registry.url, badRecords="skip"))
    assert [row.offset for row in skipping.orderBy("offset").collect()] == [0, 5]
    with pytest.raises(PySparkException, match=f"{events.name}-0 at offset 1: the value cannot be"):
        batch(spark, typed(events, real_registry.url)).collect()
    query = start(
        stream(spark, typed(events, real_registry.url))
        .writeStream.format("noop")
        .trigger(availableNow=True)
    )
    assert "there are bytes after the record" in failure(query)


def test_only_some_fields(
    spark: SparkSession, events: Events, real_registry: LocalRegistry, client: RegistryClient
) -> None:
    events.create(1)
    put(events, *framed(register(client, events, V2), V2, {"id": 1, "kind": "a"}))
    found = batch(spark, typed(events, real_registry.url, **{"value.fields": "kind"}))
    assert [row.asDict() for row in found.select("value.*").collect()] == [{"kind": "a"}]


def test_json_by_ddl_both_ways(spark: SparkSession, events: Events) -> None:
    events.create(1)
    frame = spark.range(3).selectExpr(
        "named_struct('id', id, 'tags', array(CONCAT('t', id)), 'at', timestamp_seconds(id)) value"
    )
    options = to(events, **{"value.format": "json"})
    frame.write.format("pykafka").mode("append").options(**options).save()
    put(events, b"{", b'{"id": "no number"}', b'{"id": 9, "more": [1, {}]}')
    ddl = {"value.format": "json", "value.schema": "id BIGINT, tags ARRAY<STRING>, at TIMESTAMP"}
    found = batch(spark, events.options(badRecords="null", **ddl))
    sound = found.where("value_error IS NULL")
    assert _texts(sound.where("value.id < 9"), "to_json(value)") == _texts(frame, "to_json(value)")
    assert sorted(row.id for row in sound.select("value.*").collect()) == [0, 1, 2, 9]
    assert found.where("value_error IS NOT NULL").count() == 2


PROTO = """
syntax = "proto3";
package shop;
message Other { int32 number = 1; }
message Order {
  int64 id = 1;
  optional string note = 2;
  repeated double prices = 3;
  map<string, int32> counts = 4;
}
"""


def test_protobuf_both_ways(
    spark: SparkSession, events: Events, real_registry: LocalRegistry, client: RegistryClient
) -> None:
    events.create(1)
    schema = SchemaText(SchemaType.PROTOBUF, PROTO)
    schema_id = client.register(f"{events.name}-value", schema)
    frame = spark.range(1, 4).selectExpr(
        "named_struct('id', id, 'note', IF(id = 2, NULL, 'n'), 'prices', array(id / 2), "
        "'counts', map('a', CAST(id AS INT))) AS value"
    )
    given = {
        "value.format": "protobuf",
        "value.message": "shop.Order",
        "value.schema.subject": f"{events.name}-value",
        "schema.registry.url": real_registry.url,
    }
    frame.write.format("pykafka").mode("append").options(**to(events, **given)).save()
    # The second message of the schema: a count of one index, and the index, both zigzag.
    prefix = struct.pack(">bi", 0, schema_id) + b"\2\2"
    assert all((each.value or b"").startswith(prefix) for each in written(events))
    found = batch(spark, events.options(**given))
    assert _texts(found, "to_json(value)") == _texts(frame, "to_json(value)")


ODD = """
syntax = "proto3";
package shop;
import "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Kind { VIEW = 0; CART = 1; }
message Node {
  uint32 small = 1; uint64 large = 2; Kind kind = 3; google.protobuf.Int32Value wrapped = 4;
  google.protobuf.Any any = 5; Node next = 6; google.protobuf.Timestamp at = 7;
}
"""


def test_options_of_from_protobuf(spark: SparkSession, events: Events) -> None:
    events.create(1)
    given = {"value.format": "protobuf", "value.schema": ODD}
    packed = "named_struct('type_url', 'x/shop.Node', 'value', X'0805')"
    inner = "named_struct('small', 4294967295L, 'kind', 'CART')"
    frame = spark.sql(
        f"SELECT named_struct('large', 18446744073709551615BD, 'wrapped', 7, 'any', {packed}, "
        f"'at', timestamp_micros(5), 'next', {inner}) AS value"
    )
    frame.write.format("pykafka").mode("append").options(**to(events, **given)).save()
    options = {
        "value.emit.default.values": "true",
        "value.upcast.unsigned.ints": "true",
        "value.enums.as.ints": "true",
        "value.unwrap.primitive.wrapper.types": "true",
        "value.recursive.fields.max.depth": "2",
        "value.convert.any.fields.to.json": "true",
    }
    found = batch(spark, events.options(**given, **options))
    plain = "small:bigint,large:decimal(20,0),kind:int,wrapped:int,any:string,{}at:timestamp"
    nested = f"next:struct<{plain.format('')}>,"
    kind = f"struct<{plain.format(nested)}>"
    assert found.schema["value"].dataType.simpleString() == kind
    (row,) = found.selectExpr("value.*", "unix_micros(value.at) AS micros").collect()
    assert (row.small, row.large, row.kind, row.wrapped, row.micros) == (0, 2**64 - 1, 0, 7, 5)
    assert row.any == '{"@type":"x/shop.Node","small":5}'
    assert (row.next.small, row.next.kind, row.next.wrapped) == (2**32 - 1, 1, None)
    with pytest.raises(PySparkException, match=r"holds itself.*recursive\.fields"):
        batch(spark, events.options(**given))
    # What was read with the options can be written as it is.
    narrow = {**options, "value.convert.any.fields.to.json": "false"}
    again = batch(spark, events.options(**given, **narrow)).select("value")
    again.write.format("pykafka").mode("append").options(**to(events, **given)).save()
    first, second = written(events)
    assert first.value == second.value


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"value.format": "avro"},
            "Option 'schema.registry.url': is missing, where 'value.format'",
        ),
        ({"value.format": "avro", "value.schema": "{"}, "An Avro schema is JSON"),
        (
            {"badRecords": "skip"},
            "Option 'badRecords': has no effect, since keys and values are bytes",
        ),
        ({"value.fields": "a"}, "Option 'value.fields': has no effect where 'value.format' is"),
        (
            {"value.format": "arvo"},
            "Option 'value.format': found 'arvo'. Give one of binary, string",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_when_it_is_loaded(
    spark: SparkSession, events: Events, options: dict[str, str], text: str
) -> None:
    with pytest.raises(PySparkException) as failed:
        batch(spark, events.options(**options))
    assert text in str(failed.value)


def test_topics_whose_schemas_differ_need_one_that_is_named(
    events: Events, real_registry: LocalRegistry, client: RegistryClient
) -> None:
    spark = SparkSession.active()
    other = events.another("other")
    for topic, schema in ((events, V1), (other, V2)):
        topic.create(1)
        put(topic, *framed(register(client, topic, schema), schema, {"id": 1, "kind": "x"}))
    both = typed(events, real_registry.url, subscribe=f"{events.name},{other.name}")
    with pytest.raises(PySparkException, match="is not given, and subjects differ"):
        batch(spark, both)
    named = both | {"value.schema.subject": f"{other.name}-value"}
    assert _texts(batch(spark, named), "value.kind") == ["none", "x"]
    missing = typed(events, real_registry.url, **{"value.schema.subject": "no-such-subject"})
    with pytest.raises(PySparkException, match="no-such-subject"):
        batch(spark, missing)
