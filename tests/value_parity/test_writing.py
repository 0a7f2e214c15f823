"""Writing Avro beside `to_avro`: the same bytes, refused by both, or a listed difference."""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values import encode_values
from spark_kafka_source.values.avro import AvroWriter
from spark_kafka_source.values.fitting import UnfitColumnError
from tests.values.avro_fit_oracle import NoValueError, Oracle, read_back
from tests.values.avro_pairs import column
from tests.values.test_avro_fit import reading_type, writer
from tools.value_parity.to_avro import ToAvro, to_avro
from tools.value_parity.writing import (
    KINDS,
    MARKS,
    PAGE,
    RARE,
    ROW_CUT,
    ROW_MEMBERS,
    ROW_NULL,
    WRITTEN,
    Differences,
    Kind,
    drawn_schema,
    drawn_type,
    rows_of,
    table,
)

PAIRS = 10_000


@pytest.fixture(scope="module")
def spark_writes() -> Iterator[ToAvro]:
    with to_avro() as found:
        yield found


@pytest.mark.long
@pytest.mark.spark
def test_pairs_are_written_alike_or_differ_as_the_page_says(spark_writes: ToAvro) -> None:
    found: Counter[Kind] = Counter()
    alike: Counter[tuple[bool, bool]] = Counter()
    for number in range(PAIRS):
        random = Random(number)
        schema = drawn_schema(random)
        kind = drawn_type(random, reading_type(schema))
        kinds = judged(spark_writes, random, schema, kind)
        found.update(kinds)
        alike[all(each.here == WRITTEN for each in kinds), not kinds] += 1
    for number, (schema, kind) in enumerate(RARE):
        found.update(judged(spark_writes, Random(number), schema, kind))
    assert not [each.what for each in KINDS if not found[each]]
    assert alike[True, True] > PAIRS / 4, alike


def judged(spark_writes: ToAvro, random: Random, schema: Any, kind: pa.DataType) -> set[Kind]:
    """Check a pair. Return the differences."""
    rows = rows_of(random, kind)
    given, by = column(kind, rows), writer(schema)
    kinds = {each for _, each in Differences(schema).of(schema, kind)}
    answer = spark_writes(schema, given)
    case = f"{schema} for {kind}: {answer.refusal}"
    assert fits(by, kind) is all(each.here == WRITTEN for each in kinds), case
    assert (not answer.refusal) is all(each.there == WRITTEN for each in kinds), case
    if kinds:
        return kinds
    for place, there in enumerate(answer.rows):
        here = one_row(by, given[place : place + 1])
        if not same(schema, here, there):
            found = _difference(schema, kind, rows[place], here, there)
            assert found is not None, f"{schema} for {kind}, {rows[place]}: {here!r}, {there!r}"
            kinds.add(found)
    return kinds


def fits(by: AvroWriter, kind: pa.DataType) -> bool:
    try:
        by.fit(kind)
    except UnfitColumnError:
        return False
    return True


def one_row(by: AvroWriter, given: pa.Array) -> bytes | str | None:
    """Return the bytes of a row, or the reason that it is refused."""
    try:
        found: bytes | None = encode_values(by, given)[0].as_py()
    except UnencodableRowError as error:
        return error.reason
    return found


def same(schema: Any, here: bytes | str | None, there: bytes | str | None) -> bool:
    """Whether both wrote the same. Java's maps have an order of their own."""
    if isinstance(here, bytes) and isinstance(there, bytes):
        is_map = "'map'" in repr(schema) and len(here) == len(there)
        return here == there or (is_map and sorted_of(schema, here) == sorted_of(schema, there))
    return type(here) is type(there)


def sorted_of(schema: Any, data: bytes) -> str:
    return repr(_sorted(read_back(schema, data)))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((name, _sorted(each)) for name, each in value.items())
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _difference(
    schema: Any, kind: pa.DataType, row: Any, here: bytes | str | None, there: bytes | str | None
) -> Kind | None:
    """Return the difference of a row that `to_avro` writes, and that is refused here."""
    if not isinstance(here, str) or not isinstance(there, bytes):
        return None
    try:
        Oracle(schema).wanted(schema, kind, row)
    except NoValueError as error:
        null = ROW_NULL if "'fields': []" in repr(schema) else None
        rows = {"is not a whole": ROW_CUT, "several members": ROW_MEMBERS, "null": null}
        return rows.get(str(error))
    return None


def test_the_page_has_each_difference() -> None:
    assert MARKS.split(PAGE)[1] == table()
