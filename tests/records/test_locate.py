"""Stage 2a: inconsistent records are errors that name the record."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import CorruptRecordError
from spark_kafka_source.records import (
    Record,
    chunks,
    compiled,
    encode_batch,
    kernels,
    to_arrow,
)
from spark_kafka_source.records.compiled import Kernels
from spark_kafka_source.records.encode import encode_record, with_crc
from spark_kafka_source.records.varints import encode_varint
from spark_kafka_source.records.walk import walk
from tests.records.batches import TOPIC_PARTITION, rows_of
from tests.records.oracle import Oracle, ask_kafka


@pytest.fixture(autouse=True, params=["numpy", "kernels"])
def located_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all tests with numpy, and with interpreted kernels."""
    if request.param == "kernels":
        found = Kernels(kernels.locate_records, kernels.locate_headers, kernels.copy_records)
        monkeypatch.setattr(compiled, "kernels", lambda record_count=0: found)


def record(*fields: bytes | int, length: int | None = None) -> bytes:
    """Return a record of these fields (integers become varints), with any length."""
    body = b"".join(f if isinstance(f, bytes) else encode_varint(f) for f in fields)
    return encode_varint(len(body) if length is None else length) + body


def batch(*records: bytes, count: int | None = None) -> bytes:
    """Return these bytes with a correct batch header."""
    data = b"".join(records)
    header = bytearray(encode_batch([], base_offset=70, last_offset_delta=99))
    header[8:12] = (len(data) + 49).to_bytes(4)
    header[57:61] = (len(records) if count is None else count).to_bytes(4)
    return with_crc(bytes(header) + data)


def without_headers(fetch: bytes) -> list[pa.RecordBatch]:
    """Read the columns that compiled kernels copy in one pass."""
    return [to_arrow(each) for each in chunks(fetch, topic_partition=TOPIC_PARTITION)]


Read = Callable[[bytes], object]
both_ways = pytest.mark.parametrize("read", [rows_of, without_headers])
GOOD = record(b"\0", 0, 0, 1, b"k", 1, b"v", 0)
NEXT = record(b"\0", 0, 2, 1, b"k", 1, b"v", 1, 1, b"h", 1, b"x")


def test_the_records_of_these_tests_are_good_where_they_are_not_broken() -> None:
    assert [row.offset for row in rows_of(batch(GOOD, NEXT))] == [70, 72]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(b"\0", 0, 1, 1, b"k", 1, b"v", 0, length=-9), "its length is negative"),
        (record(b"\0", 0, 1, 2, b"k", 1, b"v", 0), "its fields do not end where it ends"),
        (record(b"\0", 0, 1, 1, b"k", 2, b"v", 0), "its fields do not end where it ends"),
        (record(b"\0", 0, 1, 1, b"k", 1 << 30, b"v", 0), "its fields do not end where it ends"),
        (record(b"\0", 0, 1, (1 << 33), b"k", 1, b"v", 0), "its fields do not end where it ends"),
        (record(b"\0", b"\xff" * 10, 1, 0, 0, 0), "its fields do not end where it ends"),
        (record(b"\0", 0, b"\xff" * 5, 0, 0, 0), "its fields do not end where it ends"),
        (record(b"\0", 0, 1, -2, 1, b"v", 0), "its key or value has a negative length"),
        (record(b"\0", 0, 1, -1, -2, 0), "its key or value has a negative length"),
        (record(b"\0", 0, 1, -1, -1, -1), "its header count is negative"),
        (record(b"\0", 0, 1, -1, -1, 1 << 30), "its headers do not fit in"),
        (record(b"\0", 0, 1, -1, -1, 2, 0, 0), "its headers do not fit in"),
        (record(b"\0", 0, 1, -1, -1, 0, b"more"), "bytes follow its last field"),
        (record(b"\0", 0, 100, -1, -1, 0), "its offset is not one of its batch"),
        (record(b"\0", 0, -1, -1, -1, 0), "its offset is not one of its batch"),
        (record(b"\0", 0, 0, -1, -1, 0), "its offset does not rise"),
    ],
)
@both_ways
def test_a_record_that_does_not_fill_its_length_is_named(
    bad: bytes, reason: str, read: Read
) -> None:
    with pytest.raises(CorruptRecordError, match=f"events-3 at offset 70: record 2 of 3: {reason}"):
        read(batch(GOOD, bad, NEXT))


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ((-1, 1, b"x"), "a header's key or value has a negative length"),
        ((1, b"h", -2), "a header's key or value has a negative length"),
        ((2, b"h", 1, b"x"), "its headers do not end where it ends"),
        ((1, b"h", 9, b"x"), "its headers do not end where it ends"),
        ((1, b"h", 1, b"xx"), "its headers do not end where it ends"),
        ((1 << 33, b"h", 1, b"x"), "its headers do not end where it ends"),
        ((b"\xff" * 6,), "its headers do not end where it ends"),
    ],
)
@pytest.mark.parametrize("many", [1, 50])
def test_headers_that_do_not_fill_their_record_are_named(
    headers: tuple[bytes | int, ...], reason: str, many: int
) -> None:
    """This holds for few records, read one by one, and for many, read all at once."""
    bad = [record(b"\0", 0, offset, 0, 0, 1, *headers) for offset in range(many)]
    with pytest.raises(CorruptRecordError, match=f"at offset 70: .*{reason}"):
        rows_of(batch(*bad))


any_names = given(st.lists(st.binary(max_size=4) | st.text(max_size=2).map(str.encode), min_size=1))
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def with_headers(names: list[bytes]) -> bytes:
    fields = [field for name in names for field in (len(name), name, 0)]
    return batch(record(b"\0", 0, 0, -1, -1, len(names), *fields))


@any_names
@example([b"caf\xe9", b"\xed\xa0\x80", b"\xed\xa0", "\ufffd\u00e9".encode()])
@untimed
def test_header_names_may_be_any_bytes(names: list[bytes]) -> None:
    """What is UTF-8 in a name stays, and the rest is U+FFFD."""
    (row,) = rows_of(with_headers(names))
    for name, (found, _) in zip(names, row.headers, strict=True):
        readable = name.decode(errors="ignore")
        assert found.replace("\ufffd", "") == readable.replace("\ufffd", "")
        assert ("\ufffd" in found) == (readable.encode() != name or "\ufffd" in readable)


@pytest.fixture(scope="module")
def oracle(kafka_jars: list[Path]) -> Iterator[Oracle]:
    with ask_kafka(kafka_jars) as oracle:
        yield oracle


@pytest.mark.java
@any_names
@example(
    [b"\xed\xa0\x80", b"\xed\xa0", b"\xed\xbf\xbfx", b"\xf0\x90", b"\xe0\x80\x80", b"\xc0\x80"]
)
@untimed
def test_header_names_are_those_of_kafkas_classes(oracle: Oracle, names: list[bytes]) -> None:
    data = with_headers(names)
    ((_, (row,)),) = oracle.decode(data)
    assert rows_of(data)[0].headers == row.headers


def test_a_record_of_very_many_headers_is_read_in_time() -> None:
    many = Record(headers=[("", b"")] * 200_000)
    (row,) = rows_of(encode_batch([many]))
    assert len(row.headers) == 200_000


@pytest.mark.parametrize(
    ("records", "count", "reason"),
    [
        ((GOOD, NEXT), 1, "1 records claimed in 22 bytes, 2 found, to byte 22"),
        ((GOOD, NEXT[:-1]), 2, "2 records claimed in 21 bytes, 2 found, to byte 22"),
        ((GOOD, b"\xff\xff\xff\xff\xff\xff\xff"), 2, "1 found|2 records claimed"),
        ((GOOD, b"\x90"), 1, "1 records claimed in"),
        ((bytes(14),), 2, "2 records claimed in 14 bytes, 14 found"),
    ],
)
@both_ways
def test_the_chain_of_lengths_must_come_out_at_the_end(
    records: tuple[bytes, ...], count: int, reason: str, read: Read
) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        read(batch(*records, count=count))


@both_ways
def test_an_error_in_a_later_batch_names_that_batch(read: Read) -> None:
    first = encode_batch([Record(), Record()], base_offset=5)
    with pytest.raises(CorruptRecordError, match="at offset 70: record 1 of 1: its offset"):
        read(first + batch(record(b"\0", 0, 100, -1, -1, 0)))


@both_ways
def test_a_batch_that_begins_before_its_base_offset_is_named(read: Read) -> None:
    before = record(b"\0", 0, -1, -1, -1, 0)
    with pytest.raises(CorruptRecordError, match="record 1 of 2: its offset is not one of its"):
        read(batch(before, GOOD))


@pytest.mark.parametrize("size", [0, 1, 50, 51, 52, 8000, 8300, 2_000_000])
def test_lengths_of_any_width_are_walked(size: int) -> None:
    data = encode_record(Record(value=bytes(size)), 0, 0) * 3
    assert walk(data, 0, len(data)) == [0, len(data) // 3, 2 * len(data) // 3, len(data)]
