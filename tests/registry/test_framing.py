"""The writer schema of each row, compared with a reader in plain Python."""

from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.records.columns import HEADERS_TYPE
from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.registry import (
    ColumnRowHeaders,
    ConfluentFraming,
    Indexes,
    Misframed,
    NoFraming,
    Part,
    SchemaKey,
)
from tests.registry.framing_oracle import agrees, laid

GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")
HEADER = "__value_schema_id"
Headers = list[tuple[str, bytes | None]] | None


def by_id(id: int, rest: bytes = b"") -> bytes:
    return b"\0" + id.to_bytes(4, "big") + rest


def by_guid(guid: UUID, rest: bytes = b"") -> bytes:
    return b"\1" + guid.bytes + rest


def message(*indexes: int) -> bytes:
    return b"".join(map(encode_varint, [len(indexes), *indexes]))


def column(headers: list[Headers]) -> pa.Array:
    rows = [
        None if each is None else [{"key": key, "value": value} for key, value in each]
        for each in headers
    ]
    return pa.array(rows, HEADERS_TYPE)


def last(headers: list[Headers]) -> list[bytes | None]:
    """Return each row's value of the last header with the name."""
    return [
        next((value for name, value in reversed(each or []) if name == HEADER), None)
        for each in headers
    ]


IDS = st.sampled_from([1, 2, 7, 70_000, (1 << 31) - 1, 1 << 31])
GUIDS = st.sampled_from([GUID, UUID(int=0), UUID(int=1)])
PATHS = st.sampled_from([b"\0", b"\2\0", message(1), message(1, 0), message(300, 2, 1), b"\x80\0"])
SOUND = st.one_of(st.builds(by_id, IDS, PATHS), st.builds(by_guid, GUIDS, PATHS))
CUT = st.builds(lambda row, size: row[: len(row) - size], SOUND, st.integers(0, 6))
MANY = st.builds(lambda numbers: by_id(5, message(*numbers)), st.lists(st.integers(-2, 9)))
WRITTEN = st.one_of(SOUND, CUT, MANY, st.binary(max_size=24))
ROWS = st.lists(st.one_of(st.none(), WRITTEN), max_size=12)
INDEXES = st.sampled_from(Indexes)
HEADERS = st.one_of(
    st.none(),
    st.lists(
        st.tuples(
            st.sampled_from([HEADER, "__key_schema_id", "other"]), st.one_of(st.none(), WRITTEN)
        ),
        max_size=3,
    ),
)


@given(ROWS, INDEXES)
def test_every_row_is_what_it_is_by_itself(rows: list[bytes | None], indexes: Indexes) -> None:
    agrees(ConfluentFraming(indexes=indexes), rows, [], None)


@given(st.lists(st.tuples(st.one_of(st.none(), WRITTEN), HEADERS), max_size=8), INDEXES)
def test_headers_go_before_what_is_in_the_row(
    rows: list[tuple[bytes | None, Headers]], indexes: Indexes
) -> None:
    headers = [each for _, each in rows]
    framing = ConfluentFraming(indexes=indexes)
    # A slice of a column works, too.
    whole = column([[(HEADER, b"of nobody")], *headers, None])
    held = ColumnRowHeaders(whole.slice(1, len(rows)))
    agrees(framing, [row for row, _ in rows], last(headers), held)


@given(st.lists(st.builds(by_id, IDS, st.binary(max_size=3)), min_size=1), INDEXES)
def test_what_is_behind_a_row_is_not_looked_at(rows: list[bytes], indexes: Indexes) -> None:
    data, starts, ends, _ = laid(rows)
    framing = ConfluentFraming(indexes=indexes)
    found = framing.frame(data, starts, ends)
    other = bytearray(data)
    inside = {at for start, end in zip(starts, ends, strict=True) for at in range(start, end)}
    for at in set(range(len(other))) - inside:
        other[at] ^= 255
    again = framing.frame(bytes(other) + b"\xff" * 9, starts, ends)
    assert (found.keys, found.status.tolist()) == (again.keys, again.status.tolist())
    assert (found.key_of.tolist(), found.starts.tolist()) == (
        again.key_of.tolist(),
        again.starts.tolist(),
    )


@pytest.mark.parametrize(
    ("row", "indexes", "reason"),
    [
        (b'{"a":1}', Indexes.NONE, "no schema id, found 7b"),
        (b"\0\0\0\1", Indexes.NONE, "no schema id, found only 4 bytes"),
        (b"", Indexes.NONE, "no schema id, found only 0 bytes"),
        (b"\1" * 16, Indexes.NONE, "no schema id, found only 16 bytes"),
        (b"\0\xff\0\0\0", Indexes.NONE, "no schema id, found the number 4278190080, of more than"),
        (by_id(1), Indexes.ZIGZAG, "message indexes that are not varints, or do not end"),
        (by_id(1, b"\2"), Indexes.ZIGZAG, "message indexes that are not varints, or do not"),
        (by_id(1, message(-1)), Indexes.ZIGZAG, "a message index of -1"),
        (by_id(1, encode_varint(1 << 31)), Indexes.ZIGZAG, "a count of 2147483648 message indexes"),
        (by_id(1, b"\xff" * 9), Indexes.PLAIN, "message indexes that are not varints"),
    ],
)
def test_reasons(row: bytes, indexes: Indexes, reason: str) -> None:
    data, starts, ends, _ = laid([by_id(7, b"\0"), row])
    found = ConfluentFraming(indexes=indexes).frame(data, starts, ends)
    assert found.key_of.tolist() == [0, -1]
    assert found.reason(1).startswith(reason)
    assert found.reason(0) == "nothing is wrong"


def test_a_header_that_is_wrong_is_not_passed_over() -> None:
    headers = column([[(HEADER, by_guid(GUID, b"!"))], [(HEADER, b"x")], None])
    data, starts, ends, _ = laid([by_id(1)] * 3)
    found = ConfluentFraming().frame(data, starts, ends, headers=ColumnRowHeaders(headers))
    assert found.key_of.tolist() == [-1, -1, 0]
    assert found.reason(0) == "in the header of the schema: 1 bytes after the schema id"
    assert found.reason(1) == "in the header of the schema: no schema id, found 78"


def test_a_header_wins_and_nothing_is_stripped() -> None:
    """Case 21 of the table: the value has a header and an old prefix."""
    headers = column([[(HEADER, by_id(3)), (HEADER, by_guid(GUID))], None])
    data, starts, ends, _ = laid([by_id(1, b"v"), by_id(1, b"v")])
    found = ConfluentFraming().frame(data, starts, ends, headers=ColumnRowHeaders(headers))
    assert [found.keys[place] for place in found.key_of] == [SchemaKey(GUID), SchemaKey(1)]
    assert (found.starts - starts).tolist() == [0, 5]


def test_keys_have_a_header_of_their_own() -> None:
    headers = column([[("__key_schema_id", by_id(3)), (HEADER, by_id(4))]])
    data, starts, ends, _ = laid([b"a key"])
    for part, id in ((Part.KEY, 3), (Part.VALUE, 4)):
        framing = ConfluentFraming(part)
        found = framing.frame(data, starts, ends, headers=ColumnRowHeaders(headers))
        assert found.keys == (SchemaKey(id),)


def test_the_same_key_by_header_and_prefix_is_one() -> None:
    headers: list[Headers] = [[(HEADER, by_id(1))], None]
    held = ColumnRowHeaders(column(headers))
    found = agrees(ConfluentFraming(), [b"v", by_id(1, b"v")], last(headers), held)
    assert found.keys == (SchemaKey(1),)


def test_without_a_framing_all_rows_have_the_key_that_is_given() -> None:
    data, starts, ends, null = laid([b"a", None, b""])
    found = NoFraming(SchemaKey(0)).frame(data, starts, ends, null=null)
    assert found.keys == (SchemaKey(0),)
    assert found.key_of.tolist() == [0, -1, 0]
    assert found.starts.tolist() == starts.tolist()
    assert not found.status.any()
    assert NoFraming(SchemaKey(0)).frame(data, starts, ends).key_of.tolist() == [0, 0, 0]


def test_it_agrees_with_confluents_own() -> None:
    for indexes in ([0], [1], [3, 0, 70_000]):
        for id, guid in ((7, None), (None, str(GUID))):
            written = SchemaId("PROTOBUF", id, guid, indexes)
            prefix = written.id_to_bytes() if guid is None else written.guid_to_bytes()
            data, starts, ends, _ = laid([prefix + b"value"])
            found = ConfluentFraming(indexes=Indexes.ZIGZAG).frame(data, starts, ends)
            assert found.keys == (SchemaKey(GUID if guid else 7, tuple(indexes)),)
            assert found.starts.tolist() == [starts[0] + len(prefix)]


def test_no_rows() -> None:
    none = np.zeros(0, np.int64)
    for indexes in Indexes:
        found = ConfluentFraming(indexes=indexes).frame(b"", none, none)
        assert (len(found.starts), found.keys, len(found.key_of)) == (0, (), 0)


def test_many_ids_are_told_apart() -> None:
    ids = [each % 700 for each in range(5_000)]
    data, starts, ends, _ = laid([by_id(id, b"\0v") for id in ids])
    found = ConfluentFraming(indexes=Indexes.ZIGZAG).frame(data, starts, ends)
    assert len(found.keys) == 700
    assert [found.keys[place].id for place in found.key_of.tolist()] == ids
    assert found.status.max() == Misframed.OK
