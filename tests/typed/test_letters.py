"""Dead letters: bad records as they came, with headers that say why and where they were."""

import re
import time
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.records import Record, chunks, encode_batch
from spark_kafka_source.records.locate import locate
from spark_kafka_source.registry import ConfluentFraming
from spark_kafka_source.typed import BadRecords, Letters, TypedConfig, TypedPart
from spark_kafka_source.typed.letters import LONGEST_REASON, Cause
from tests.typed.test_decoding import (
    AVRO,
    BAD,
    GOOD,
    STRAY,
    TEXT_KEY,
    UNKNOWN,
    V1,
    WHERE,
    chunk_of,
    plain,
    records,
)

BOTH = {"key": TEXT_KEY, "value": AVRO}


def letters_of(*given: Record, **parts: TypedPart) -> tuple[pa.RecordBatch, Letters]:
    found = records(BadRecords.TOPIC, parts=parts or {"value": AVRO}).decoded(chunk_of(*given))
    assert found.failure is None
    assert found.letters is not None
    return found.batch, found.letters


def headers(letters: Letters, row: int) -> dict[str, bytes]:
    pairs = letters.columns["headers"][row].as_py()
    return {each["key"].decode(): each["value"] for each in pairs}


def test_good_rows_go_on_and_bad_ones_are_letters_with_what_is_wrong() -> None:
    batch, letters = letters_of(*GOOD, BAD, UNKNOWN, STRAY)
    assert batch["offset"].to_pylist() == [40, 41, 42]
    assert batch["value"].to_pylist() == [{"id": 7, "name": "-"}, {"id": 8, "name": "eight"}, None]
    assert letters.offsets.tolist() == [43, 44, 45]
    assert letters.topic_partition == WHERE
    assert letters.columns["key"].to_pylist() == [b"c", b"d", b"\xff"]
    assert letters.columns["value"].to_pylist() == [BAD.value, UNKNOWN.value, STRAY.value]
    assert headers(letters, 0) == {
        "__connect.errors.topic": b"events",
        "__connect.errors.partition": b"3",
        "__connect.errors.offset": b"43",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.exception.class.name": b"spark_kafka_source.BadRecordError",
        "__connect.errors.exception.message": (
            b"the value cannot be decoded: schema 2: there are bytes after the record"
        ),
        "__pykafka.errors.timestamp": b"-1",
        "__pykafka.errors.schema.id": b"2",
    }
    assert letters.reason == headers(letters, 0)["__connect.errors.exception.message"].decode()
    assert headers(letters, 1)["__pykafka.errors.schema.id"] == b"5"
    assert "__pykafka.errors.schema.id" not in headers(letters, 2)


def test_without_bad_records_there_are_no_letters() -> None:
    found = records(BadRecords.TOPIC).decoded(chunk_of(*GOOD))
    assert found.letters is None
    assert found.batch == records().record_batch(chunk_of(*GOOD))


def test_a_record_with_a_bad_key_and_a_bad_value_is_one_letter() -> None:
    batch, letters = letters_of(STRAY, Record(key=b"\xff", value=GOOD[0].value), *GOOD, **BOTH)
    assert batch["offset"].to_pylist() == [42, 43, 44]
    assert letters.offsets.tolist() == [40, 41]
    both, key = (headers(letters, row) for row in (0, 1))
    assert both["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert both["__connect.errors.exception.message"] == (
        b"the key cannot be decoded: a string that is not UTF-8; "
        b"the value cannot be decoded: no schema id, found 7b"
    )
    assert key["__connect.errors.stage"] == b"KEY_CONVERTER"
    assert letters.columns["key"].to_pylist() == [b"\xff", b"\xff"]


def test_the_schema_that_a_header_names_is_said_and_the_header_stays() -> None:
    guid = UUID(int=77)
    part = TypedPart(AVRO.reader, ConfluentFraming(), {guid: AVRO.known[1]})
    named = ("__value_schema_id", b"\1" + guid.bytes)
    data = plain(V1, {"id": 3})
    _, letters = letters_of(Record(value=data + b"!", headers=[named]), value=part)
    found = headers(letters, 0)
    assert found["__value_schema_id"] == named[1]
    assert found["__pykafka.errors.schema.id"] == str(guid).encode()
    assert letters.columns["value"].to_pylist() == [data + b"!"]


HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4)
RECORDS = st.builds(
    Record,
    key=st.none() | st.binary(max_size=9),
    # No value begins with the byte of a schema's id.
    value=st.binary(max_size=9).filter(lambda each: not each.startswith(b"\0")),
    headers=HEADERS.filter(lambda each: all(key != "__value_schema_id" for key, _ in each)),
)


@given(st.lists(RECORDS | st.just(GOOD[0]) | st.just(GOOD[2]), min_size=1, max_size=60))
def test_a_letter_has_the_bytes_of_its_record(given: list[Record]) -> None:
    """Many records go other ways than a few: both have the same letters."""
    found = records(BadRecords.TOPIC).decoded(chunk_of(*given))
    bad = [(row, each) for row, each in enumerate(given) if each not in (GOOD[0], GOOD[2])]
    assert found.batch.num_rows == len(given) - len(bad)
    if found.letters is None:
        assert not bad
        return
    found.letters.columns.validate(full=True)
    rows = found.letters.columns.to_pylist()
    assert found.letters.offsets.tolist() == [40 + row for row, _ in bad]
    for (row, record), letter in zip(bad, rows, strict=True):
        assert (letter["key"], letter["value"]) == (record.key, record.value)
        pairs = [(each["key"], each["value"]) for each in letter["headers"]]
        count = len(record.headers)
        assert pairs[:count] == [(key.encode(), value) for key, value in record.headers]
        assert dict(pairs[count:])[b"__connect.errors.offset"] == b"%d" % (40 + row)


def test_the_name_of_a_header_that_is_not_utf_8_goes_on_as_it_is() -> None:
    data = bytearray(encode_batch([Record(value=b"{}", headers=[("name", b"x")])]))
    at = data.index(b"name")
    data[at : at + 4] = b"\xff\xfe\0\x80"
    (chunk,) = chunks(bytes(data), topic_partition=WHERE, check_crcs=False)
    letters = records(BadRecords.TOPIC).decoded(chunk).letters
    assert letters is not None
    assert letters.columns["headers"][0][0].as_py() == {"key": b"\xff\xfe\0\x80", "value": b"x"}


def test_a_letter_keeps_its_time_unless_a_broker_may_refuse_it() -> None:
    soon_ms = time.time_ns() // 1_000_000 + 3_600_000
    times = [1_700_000_000_000, soon_ms, 0, -1]
    given = [Record(value=b"{}", timestamp_ms=at, offset_delta=row) for row, at in enumerate(times)]
    (chunk,) = chunks(encode_batch(given), topic_partition=WHERE)
    letters = records(BadRecords.TOPIC).decoded(chunk).letters
    assert letters is not None
    assert letters.columns["timestamp"].to_pylist() == [times[0], None, 0, None]
    said = [int(headers(letters, row)["__pykafka.errors.timestamp"]) for row in range(4)]
    assert said == times


def test_a_reason_is_short_and_one_line() -> None:
    chunk = chunk_of(STRAY)
    letters = Letters.of(chunk, locate(chunk), [Cause("value", "a\nb\udc80" + "x" * 9_999)])
    message = headers(letters, 0)["__connect.errors.exception.message"].decode()
    assert message.startswith("a\\nb\\udc80xx")
    assert len(message) == LONGEST_REASON


def test_letters_are_not_dropped_where_no_topic_takes_them() -> None:
    with pytest.raises(ValueError, match="no way to write letters of events-3"):
        records(BadRecords.TOPIC).record_batch(chunk_of(BAD))


# -- options -------------------------------------------------------------------------------------

DDL = {"value.format": "json", "value.schema": "id BIGINT"}


def parsed(**options: str) -> TypedConfig:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return TypedConfig.from_settings(Settings({n.lower(): v for n, v in (DDL | named).items()}))


def test_the_topic_is_read() -> None:
    config = parsed(badRecords="Topic", badRecords_topic=" letters ")
    assert config.bad_records is BadRecords.TOPIC
    assert config.bad_records_topic == "letters"
    assert parsed().bad_records_topic == parsed(badRecords="skip").bad_records_topic == ""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"badRecords": "topic"}, "'badRecords.topic': is missing, where 'badRecords' is 'topic'"),
        ({"badRecords": "topic", "badRecords.topic": "  "}, "'badRecords.topic': is empty"),
        ({"badRecords.topic": "x"}, "'badRecords.topic': has no effect where .* is 'fail'"),
        ({"badRecords": "null", "badRecords.topic": "x"}, "has no effect where .* is 'null'"),
        (
            {"badRecords": "topic", "badRecords.topic": "x", "value.format": "binary"},
            "'badRecords': has no effect, since keys and values are bytes",
        ),
        (
            {"badRecords.topic": "x", "value.format": "binary"},
            "'badRecords.topic': has no effect, since keys and values are bytes",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], text: str) -> None:
    given = {name: value for name, value in DDL.items() if "value.format" not in options}
    named = {name.lower(): value for name, value in (given | options).items()}
    with pytest.raises(ConfigurationError) as refused:
        TypedConfig.from_settings(Settings(named))
    assert re.search(text, str(refused.value))
