"""Random schemas and values, with evolutions and damage: fastavro's result, or malformed."""

import datetime
import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.values import Encoded, UnresolvableError
from spark_kafka_source.values.avro import TIME, ReaderSchema, decode, parse_schema, resolve
from tests.fuzz.test_fuzz import EDITS
from tests.values.avro_fit_oracle import by_fastavro
from tests.values.avro_forms import Forms, drawn_rows
from tests.values.avro_oracle import (
    agrees,
    decoded,
    expected,
    laid,
    plain,
    program,
    read,
    written,
)
from tests.values.avro_pairs import TIMES
from tests.values.avro_schemas import evolved, logical, records, schemas, values
from tools.fuzz.mutations import edited

drawn = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
EACH = pytest.mark.usefixtures("engine")


@EACH
@drawn
@given(st.data())
def test_what_was_written_is_read(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = data.draw(st.lists(values(schema), max_size=6))
    encoded = written(schema, rows)
    found = decoded(schema, schema, encoded)
    assert not found.status.any(), found.reason(int(found.status.argmax()))
    wanted = [expected(read(schema, schema, each), schema) for each in encoded]
    assert plain(found.array) == wanted


@EACH
@settings(drawn, max_examples=200)
@given(st.integers(0, 1 << 32))
def test_each_union_is_read_by_its_branches(seed: int) -> None:
    """A number and a time in one union can be told apart, also in arrays and maps."""
    schema, _, rows = drawn_rows(seed)
    forms = Forms(schema)
    found = decoded(schema, schema, [by_fastavro(schema, each) for each in rows])
    assert not found.status.any(), found.reason(int(found.status.argmax()))
    assert plain(found.array) == [forms.column(schema, each) for each in rows]


@EACH
@drawn
@given(st.data())
def test_a_reader_evolves(data: st.DataObject) -> None:
    writer = data.draw(records())
    reader = data.draw(evolved(writer))
    encoded = written(writer, data.draw(st.lists(values(writer), max_size=6)))
    found = decoded(writer, reader, encoded)
    assert not found.status.any(), found.reason(int(found.status.argmax()))
    wanted = [expected(read(writer, reader, each), reader) for each in encoded]
    assert plain(found.array) == wanted


@drawn
@given(st.data())
def test_rows_of_several_writers_keep_their_places(data: st.DataObject) -> None:
    reader = data.draw(records())
    writers = [reader, data.draw(st.just(reader) | evolvers(reader)), reader]
    drawn_rows = data.draw(
        st.lists(st.integers(-1, 2).flatmap(lambda n: st.tuples(st.just(n), values(reader))))
    )
    encoded = [written(writers[max(n, 0)], [value])[0] for n, value in drawn_rows]
    programs = [program(writer, reader) for writer in writers]
    found = decode(
        programs[0][0].layout,
        [resolved for _, resolved in programs],
        Encoded(*laid(encoded), program_of=np.array([n for n, _ in drawn_rows], np.int64)),
    )
    found.array.validate(full=True)
    wanted = [
        None if n < 0 else expected(read(writers[n], reader, row), reader)
        for (n, _), row in zip(drawn_rows, encoded, strict=True)
    ]
    assert plain(found.array) == wanted
    assert found.status.astype(bool).tolist() == [n < 0 for n, _ in drawn_rows]


def evolvers(reader: Any) -> st.SearchStrategy[Any]:
    """Draw an older writer with another order of fields, and one more field."""
    more = {"name": "older", "type": {"type": "array", "items": "string"}, "default": []}
    return st.permutations([*reader["fields"], more]).map(
        lambda fields: reader | {"fields": fields}
    )


@EACH
@drawn
@given(st.data(), EDITS)
def test_broken_bytes_are_read_as_the_oracle_reads_them_or_bad(
    data: st.DataObject, edits: Any
) -> None:
    writer = data.draw(records())
    reader = data.draw(evolved(writer))
    (good, *rest) = written(writer, data.draw(st.lists(values(writer), min_size=2, max_size=4)))
    broken = [edited(row, edits) for row in rest]
    found = decoded(writer, reader, [good, *broken, good])
    assert found.status[0] == found.status[-1] == 0
    rows = plain(found.array)
    assert rows[0] == rows[-1] == expected(read(writer, reader, good), reader)
    agrees(writer, reader, broken, found.status[1:-1], rows[1:-1])


# -- times whose unit or kind changes --------------------------------------------------------------

KINDS = [("int", ""), ("long", ""), *((of, name) for of, names in TIMES.items() for name in names)]
UNITS = {"date": 86_400_000_000_000, "millis": 1_000_000, "micros": 1_000, "nanos": 1}
SHAPES: dict[str, Any] = {
    "alone": lambda kind: kind,
    "nullable": lambda kind: ["null", kind],
    "array": lambda kind: {"type": "array", "items": kind},
    "map": lambda kind: {"type": "map", "values": kind},
    "union": lambda kind: ["string", "null", kind],
}


def nanos_of(kind: str, raw: int) -> int:
    """Return what a number means: by fastavro, unless it or Python has no such value."""
    schema = fastavro.parse_schema(logical("int" if "millis" in kind else "long", kind))
    (data,) = written("long", [raw])
    try:
        value: Any = fastavro.schemaless_reader(io.BytesIO(data), schema, None)
    except (OverflowError, ValueError):
        value = raw
    if kind.startswith("time-") and raw * UNITS[kind[5:]] not in range(UNITS["date"]):
        value = raw  # fastavro takes the hour modulo 24.
    match value:
        case datetime.datetime():
            since = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        case datetime.date():
            since = value - datetime.date(1970, 1, 1)
        case datetime.time():
            since = datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min
        case _:
            return raw * UNITS[kind.rpartition("-")[2]]
    return since // datetime.timedelta(microseconds=1) * 1_000


def meant(writer: str, reader: str, raw: int, column: pa.DataType) -> int | None:
    """Return the number in a column, or None if 64 bits do not hold it."""
    if not reader:
        return raw
    own = UNITS[reader.rpartition("-")[2]]
    if pa.types.is_timestamp(column) or pa.types.is_time(column):
        own = UNITS["micros" if column.unit == "us" else "nanos"]
    number = nanos_of(writer or reader, raw) // own
    return number if -1 << 63 <= number < 1 << 63 else None


def is_the_same_kind(writer: tuple[str, str], reader: tuple[str, str]) -> bool:
    (given, one), (wanted, other) = writer, reader
    of, to = one.rpartition("-")[0], other.rpartition("-")[0]
    has_a_moment = one == "date" and to in ("timestamp", "local-timestamp")
    return (given, wanted) != ("long", "int") and (
        not one or not other or one == other or of == to != "" or has_a_moment
    )


@EACH
@settings(drawn, max_examples=300)
@given(
    st.sampled_from(KINDS), st.sampled_from(KINDS), st.sampled_from(sorted(SHAPES)),
    st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-(1 << 44), 1 << 44), st.booleans(),
)  # fmt: skip
def test_a_time_is_the_same_in_another_unit_or_bad(
    writer: tuple[str, str], reader: tuple[str, str], shape: str, raw: int, is_time: bool
) -> None:
    if writer[0] == "int":
        raw %= 86_400_000 if writer[1] == "time-millis" else 1 << 31
    given, wanted = (logical(*each) if each[1] else each[0] for each in (writer, reader))
    in_shape = SHAPES[shape]
    value = {"array": [raw], "map": {"k": raw}}.get(shape, raw)
    one: Any = {"type": "record", "name": "R", "fields": [{"name": "v", "type": in_shape(given)}]}
    default = {"name": "d", "type": wanted, "default": raw % (1 << 31)}
    other = {**one, "fields": [{"name": "v", "type": in_shape(wanted)}, default]}
    by = ReaderSchema.of(parse_schema(json.dumps(other)), time_type=TIME if is_time else None)
    types = f"{parse_schema(json.dumps(given)).type} was written"
    if not is_the_same_kind(writer, reader) and shape not in ("nullable", "union"):
        with pytest.raises(UnresolvableError, match="was written") as error:
            resolve(parse_schema(json.dumps(one)), by)
        assert error.value.found == types
        return
    resolved = resolve(parse_schema(json.dumps(one)), by)
    found = decode(by.layout, [resolved], Encoded(*laid(written(one, [{"v": value}]))))
    column = by.arrow_type.field("d").type
    number = meant(writer[1], reader[1], raw, column)
    if not is_the_same_kind(writer, reader) or number is None:
        assert found.status[0]
        assert found.array.to_pylist() == [None]
        if number is not None:
            assert found.reason(0).startswith(f"v: {types}")
        return
    by_shape = {
        "array": [number], "map": {"k": number}, "union": {"member0": None, "member1": number},
    }  # fmt: skip
    own = meant("", reader[1], raw % (1 << 31), column)
    if own is None:
        assert found.status[0]
    else:
        assert plain(found.array) == [{"v": by_shape.get(shape, number), "d": own}]
