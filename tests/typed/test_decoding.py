"""Typed columns of a chunk. Malformed records fail, become errors, or are dropped."""

import json
import logging
import pickle
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_kafka_source.records import Chunk, Record, chunks, encode_batch
from spark_kafka_source.registry import (
    ConfluentFraming,
    NoFraming,
    SchemaId,
    SchemaKey,
    ShippedSchemas,
)
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import (
    BadRecordError,
    BadRecords,
    TypedColumns,
    TypedPart,
    TypedRecords,
)
from spark_kafka_source.typed.decoding import NO_ID
from spark_kafka_source.values import SchemaText, SchemaType, TextReader
from spark_kafka_source.values.avro import AvroReader
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader
from tests.values.avro_oracle import written

WHERE = TopicPartition("events", 3)
ALL = ("key", "value", "offset")
V1 = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "name", "type": "string"}]}
READER = {**V1, "fields": [*V1["fields"], {"name": "name", "type": "string", "default": "-"}]}
KNOWN: dict[SchemaId, SchemaText] = {
    1: SchemaText(SchemaType.AVRO, json.dumps(V1)),
    2: SchemaText(SchemaType.AVRO, json.dumps(V2)),
}
TEXT_KEY = TypedPart(
    TextReader(), NoFraming(SchemaKey(NO_ID)), {NO_ID: SchemaText(SchemaType.JSON, "")}
)
AVRO = TypedPart(
    AvroReader(SchemaText(SchemaType.AVRO, json.dumps(READER))), ConfluentFraming(), KNOWN
)


def chunk_of(*records: Record) -> Chunk:
    numbered = [
        Record(key=each.key, value=each.value, headers=each.headers, offset_delta=number)
        for number, each in enumerate(records)
    ]
    data = encode_batch(numbered, base_offset=40)
    (chunk,) = chunks(data, topic_partition=WHERE)
    return chunk


def value(schema_id: int, row: dict[str, Any]) -> bytes:
    return struct.pack(">bi", 0, schema_id) + plain({1: V1, 2: V2}[schema_id], row)


def plain(schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    (found,) = written(schema, [row])
    return found


def records(
    bad_records: BadRecords = BadRecords.FAIL,
    columns: Sequence[str] = ALL,
    parts: Mapping[str, TypedPart] = MappingProxyType({"value": AVRO}),
) -> TypedRecords:
    typed = TypedColumns(tuple(columns), parts, bad_records)
    return TypedRecords(typed, {name: ShippedSchemas(each.known) for name, each in parts.items()})


GOOD = [
    Record(key=b"a", value=value(1, {"id": 7})),
    Record(key=b"b", value=value(2, {"id": 8, "name": "eight"})),
    Record(key=None, value=None),
]
BAD = Record(key=b"c", value=value(2, {"id": 9, "name": "nine"}) + b"!")
UNKNOWN = Record(key=b"d", value=b"\0\0\0\0\5abc")
STRAY = Record(key=b"\xff", value=b"{}")


def test_each_row_is_read_by_the_schema_that_it_was_written_with() -> None:
    found = records().record_batch(chunk_of(*GOOD))
    assert found.schema == TypedColumns(ALL, {"value": AVRO}).schema
    assert found["value"].to_pylist() == [
        {"id": 7, "name": "-"},
        {"id": 8, "name": "eight"},
        None,
    ]
    assert found["key"].to_pylist() == [b"a", b"b", None]
    assert found["offset"].to_pylist() == [40, 41, 42]


def test_a_bad_record_fails_by_its_place_its_schema_its_bytes_and_what_to_do() -> None:
    with pytest.raises(BadRecordError) as failed:
        records().record_batch(chunk_of(*GOOD, BAD))
    data = BAD.value or b""
    assert str(failed.value) == (
        "events-3 at offset 43: the value cannot be decoded: schema 2: there are bytes after the "
        f"record. It is {data.hex(' ')}. Option 'badRecords' lets it pass: 'null' keeps its bytes "
        "in a column of errors, 'skip' leaves the record out, 'topic' sends it to the topic in "
        "'badRecords.topic'"
    )
    assert (failed.value.topic_partition, failed.value.offset) == (WHERE, 43)


@example("a\r\n\x0b\x1c\x85\x9b\u202e\u2028 b", True)
@example("\ud800", False)
@given(st.text(st.characters(exclude_categories=())), st.booleans())
def test_what_a_producer_wrote_starts_no_line_and_steers_no_terminal(
    text: str, is_raw: bool
) -> None:
    data = json.dumps({"x" if is_raw else text: text}, ensure_ascii=not is_raw)
    record = Record(value=data.encode(errors="replace"))
    part = TypedPart(JsonReader(from_ddl("MAP<STRING, INT>")), TEXT_KEY.framing, TEXT_KEY.known)
    found = records(BadRecords.NULL, ["value"], {"value": part}).record_batch(chunk_of(record))
    (error,) = found["value_error"].to_pylist()
    assert error["reason"].isprintable()
    with pytest.raises(BadRecordError) as failed:
        records(BadRecords.FAIL, ["value"], {"value": part}).record_batch(chunk_of(record))
    assert str(failed.value).isprintable()


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record(value=b"a\x1c\xc2\x85b"), r"It is a\\x1c\\x85b\. Option"),
        (STRAY, r"no schema id, found 7b\. It is \{\}\. Option"),
        (Record(value=b"a" + "é".encode() * 300), r"It is aé{199} \.\.\. of 601 bytes\. Option"),
        (Record(value=b"\xc3"), r"It is c3\. Option"),
        (Record(value=b""), "no schema id, found only 0 bytes. It is empty"),
        (UNKNOWN, "the registry has no schema 5"),
        (Record(value=b"\0\0\0\0\1" + b"\xff" * 40), r"ff ff \.\.\. of 45 bytes"),
    ],
)
def test_what_is_wrong_is_said(record: Record, reason: str) -> None:
    with pytest.raises(BadRecordError, match=reason):
        records().record_batch(chunk_of(record))


def test_errors_are_a_column_beside_null_values() -> None:
    found = records(BadRecords.NULL).record_batch(chunk_of(*GOOD, BAD, UNKNOWN, STRAY))
    found.validate(full=True)
    assert found.schema.names == [*ALL, "value_error"]
    assert found["value"].to_pylist()[2:] == [None] * 4
    assert found["value_error"].to_pylist() == [
        None,
        None,
        None,
        {"reason": "there are bytes after the record", "schema_id": 2, "bytes": BAD.value},
        {"reason": "the registry has no schema 5", "schema_id": 5, "bytes": UNKNOWN.value},
        {"reason": "no schema id, found 7b", "schema_id": None, "bytes": STRAY.value},
    ]
    again = records(BadRecords.NULL).record_batch(chunk_of(*GOOD))
    assert again["value_error"].null_count == 3
    assert again.schema == found.schema


def test_skipped_records_are_counted_and_the_first_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = records(BadRecords.SKIP)
    with caplog.at_level(logging.WARNING):
        found = task.record_batch(chunk_of(BAD, *GOOD, STRAY))
        assert task.record_batch(chunk_of(BAD)).num_rows == 0
    assert found["offset"].to_pylist() == [41, 42, 43]
    assert found["value"].to_pylist()[0] == {"id": 7, "name": "-"}
    assert task.skipped == 3
    (message,) = caplog.messages
    assert message.startswith(
        "Skipped a bad record, and will skip later ones without a log line: events-3 at offset 40"
    )


def test_both_parts_may_be_bad() -> None:
    parts = {"key": TEXT_KEY, "value": AVRO}
    found = records(BadRecords.NULL, parts=parts).record_batch(chunk_of(STRAY, BAD))
    assert found["key"].to_pylist() == [None, "c"]
    reasons = [None if each is None else each["reason"] for each in found["key_error"].to_pylist()]
    assert reasons == ["a string that is not UTF-8", None]
    assert found["value_error"].null_count == 0
    with pytest.raises(BadRecordError, match="the key cannot be decoded"):
        records(parts=parts).record_batch(chunk_of(STRAY))


def test_a_part_that_is_not_among_the_columns_is_not_looked_at() -> None:
    found = records(BadRecords.FAIL, ["offset", "key"]).record_batch(chunk_of(STRAY, BAD))
    assert found.schema.names == ["offset", "key"]
    assert found.num_rows == 2


def test_a_guid_in_a_header_goes_before_what_is_in_the_value() -> None:
    guid = UUID(int=77)
    known: dict[SchemaId, SchemaText] = {guid: KNOWN[1]}
    part = TypedPart(AVRO.reader, ConfluentFraming(), known)
    headers = [("__value_schema_id", b"\1" + guid.bytes), ("other", b"x")]
    data = plain(V1, {"id": 3})
    found = records(BadRecords.NULL, parts={"value": part}).record_batch(
        chunk_of(Record(value=data, headers=headers), Record(value=b"\0\0\0\0\1" + data))
    )
    assert found["value"].to_pylist() == [{"id": 3, "name": "-"}, None]
    assert found["value_error"].to_pylist()[1]["schema_id"] == 1


def test_typed_columns_can_be_pickled() -> None:
    typed = TypedColumns(ALL, {"value": AVRO}, BadRecords.NULL)
    again = pickle.loads(pickle.dumps(typed))
    assert again.schema == typed.schema
    assert isinstance(again.schema, pa.Schema)
