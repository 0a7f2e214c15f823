"""Random schemas and values, with evolutions and damage: fastavro's result, or malformed."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.values import Encoded
from spark_kafka_source.values.avro import decode
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
from tests.values.avro_schemas import evolved, records, schemas, values
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
