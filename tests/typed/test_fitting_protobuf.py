"""What does not fit a Protobuf message is refused before a row is written, in all ways to write."""

import datetime
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values.fitting import UnfitColumnError
from tests.typed.test_fitting import COLUMNS, NOON, NTZ, UTC, WAYS, Way, by_dict, column

PROTO = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message M {
  google.protobuf.Timestamp ts = 1; float f = 2; bool b = 3; int64 n = 4; string s = 5;
  repeated int32 many = 6; M inner = 7; google.protobuf.Int32Value wrapped = 8; bytes data = 9;
}"""


def options(**more: str) -> dict[str, str]:
    return {"value.format": "protobuf", "value.schema": PROTO, **more}


REFUSED: list[tuple[str, pa.DataType, Any]] = [
    ("ts", pa.int64(), 1_700_000_000), ("ts", pa.int32(), 1_700_000_000),
    ("ts", NTZ, NOON.replace(tzinfo=None)), ("ts", pa.date32(), datetime.date(2024, 1, 1)),
    ("f", pa.float64(), 1e300), ("b", pa.int32(), 5), ("n", pa.string(), "12"),
    ("s", pa.int32(), 12), ("s", pa.binary(), b"a"), ("data", pa.string(), "a"),
    ("many", pa.list_(pa.string()), ["1"]), ("wrapped", pa.string(), "1"),
]  # fmt: skip


@pytest.mark.parametrize("way", COLUMNS)
@pytest.mark.parametrize(("name", "kind", "value"), REFUSED, ids=str)
def test_another_type_is_refused_with_its_path(
    way: Way, name: str, kind: pa.DataType, value: Any
) -> None:
    with pytest.raises(UnfitColumnError, match=rf"Column 'value\.{name}(\[\])?'.*The schema has"):
        way(column(kind, value, name), options())
    nested = pa.struct([(name, kind)])
    with pytest.raises(UnfitColumnError, match=rf"Column 'value\.inner\.{name}(\[\])?'"):
        way(column(nested, {name: value}, "inner"), options())


@pytest.mark.parametrize(("name", "kind", "value"), REFUSED, ids=str)
def test_another_value_is_refused_in_a_dict_too(name: str, kind: pa.DataType, value: Any) -> None:
    with pytest.raises(UnencodableRowError, match=f"Row 0: {name}"):
        by_dict(column(kind, value, name), options())


@pytest.mark.parametrize("way", WAYS)
def test_fields_that_the_message_lacks_are_left_out_only_by_name(way: Way) -> None:
    value = column(pa.int64(), 1, "N")
    with pytest.raises(KafkaError, match="did you mean 'n'"):
        way(value, options())
    assert way(value, options(**{"value.ignore.fields": "N"})) == b""
    nested = column(
        pa.struct([("zip", pa.string()), ("n", pa.int64())]), {"zip": "", "n": 1}, "inner"
    )
    with pytest.raises(KafkaError, match=r"inner\.zip.*the schema has no such field"):
        way(nested, options())
    assert way(nested, options(**{"value.ignore.fields": "inner.zip"})) == b"\x3a\x02\x20\x01"


@pytest.mark.parametrize("way", WAYS)
def test_a_moment_is_written_as_itself(way: Way) -> None:
    parts = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
    seconds = int(NOON.timestamp())
    data = way(column(parts, {"seconds": seconds, "nanos": None}, "ts"), options())
    assert way(column(UTC, NOON, "ts"), options()) == data
    assert way(column(pa.int32(), 0, "wrapped"), options()) == b"\x42\x00"
