"""Arrow to Protobuf: upb and our decoder read the written values."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values.protobuf import ProtobufReader, ProtobufWriter
from spark_kafka_source.values.typing import ProtobufTyping
from tests.values.protobuf_oracle import decoded, expected, plain, reader_of
from tests.values.protobuf_schemas import Files, filled, message_class
from tests.values.test_protobuf_cases import proto, reader
from tests.values.test_protobuf_oracle import SEEDS, drawn, typings


def encode(by: ProtobufReader, array: pa.Array, prefix: bytes = b"") -> pa.BinaryArray:
    return ProtobufWriter(by.descriptors, by.message.name).encode(array, prefix)


def without_oneof_defaults(file: FileDescriptorProto) -> None:
    """Remove defaults in oneofs: a member with a default is never null, so several seem set."""
    for message in file.message_type:
        for field in message.field:
            if field.HasField("oneof_index"):
                field.ClearField("default_value")


@drawn
@given(SEEDS)
def test_what_is_encoded_is_decoded(seed: int) -> None:
    random = Random(seed)
    file, typing = Files(random).file(), typings(random)
    without_oneof_defaults(file)
    kind, by = message_class(file), reader_of(file, typing)
    rows = [filled(random, kind()).SerializeToString() for _ in range(random.randint(0, 6))]
    found = decoded(by, rows)
    array = found.array.filter(found.array.is_valid())
    again = encode(by, array, b"\0")
    again.validate(full=True)
    data = [each[1:] for each in again.to_pylist()]
    assert all(each[:1] == b"\0" for each in again.to_pylist())
    assert [expected(kind.FromString(each), typing) for each in data] == plain(array)
    assert plain(decoded(by, data).array) == plain(array)
    assert encode(by, array.slice(1, 3)).to_pylist() == data[1:4]


def test_bytes_equal_those_of_upb() -> None:
    """Fields are in the order of their numbers and packed. Zeros are left out."""
    kind = message_class(Files(Random(0), "proto3").file())
    assert kind.DESCRIPTOR.full_name == "p.M0"
    by = reader("Plain")
    row = {"i32": -1, "text": "", "many": [1, 300], "choice": 0, "flag": False}
    (found,) = encode(by, pa.array([{**dict.fromkeys(NAMES), **row}], by.arrow_type)).to_pylist()
    same = proto("Plain")(i32=-1, many=[1, 300], choice=0).SerializeToString()
    assert found == same


NAMES = [each.name for each in proto("Plain").DESCRIPTOR.fields]

REFUSED: list[tuple[str, list[Any], str]] = [
    ("Plain", [None], "^Row 0: null, where Protobuf has none"),
    ("Plain", [{"many": [None]}], r"^Row 0: many\[\]: null, where Protobuf has none"),
    ("Plain", [{}, {"choice": 1, "other": "x"}], "^Row 1: several of choice, other"),
    ("Plain", [{"kind": "NONE"}], "^Row 0: kind: 'NONE' is none of the symbols VIEW, CART"),
    ("Old", [{"kind": "7", "must": 1}], "^Row 0: kind: '7' is none of the symbols"),
    ("Old", [{"kind": "LEFT"}], "^Row 0: must: null, where Protobuf has none"),
]


@pytest.mark.parametrize(("name", "rows", "message"), REFUSED)
def test_rows_without_a_place_are_refused(name: str, rows: list[Any], message: str) -> None:
    by = reader(name)
    with pytest.raises(UnencodableRowError, match=message):
        encode(by, pa.array(rows, by.arrow_type))


def test_numbers_without_a_sign_are_held_to_their_bits() -> None:
    by = reader("Plain", typing=ProtobufTyping(upcast_unsigned_ints=True))
    good = pa.array([{"u32": (1 << 32) - 1, "u64": (1 << 64) - 1}], by.arrow_type)
    assert decoded(by, encode(by, good).to_pylist()).array.to_pylist()[0]["u64"] == (1 << 64) - 1
    for bad in ({"u32": 1 << 32}, {"u32": -1}, {"u64": 1 << 64}, {"u64": -1}):
        with pytest.raises(UnencodableRowError, match="without a sign"):
            encode(by, pa.array([bad], by.arrow_type))
