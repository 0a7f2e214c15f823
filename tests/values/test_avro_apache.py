"""Random schemas and values, random evolutions and damage, compared with Apache's Python reader.

fastavro takes any byte as a boolean and any long as an int. This reader is made strict here. It
lacks aliases, defaults of a reader's enum, strings as bytes, and promotions of items.
"""

import io
import json
from collections.abc import Iterator
from typing import Any

import avro.io
import avro.schema
from avro.errors import AvroException
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.values import Fault
from tests.fuzz.test_fuzz import EDITS
from tests.values.avro_oracle import bare, decoded, expected, plain, written
from tests.values.avro_schemas import ADDED, PROMOTIONS, kind_of, records, values
from tests.values.test_avro_oracle import EACH, drawn
from tools.fuzz.mutations import edited

LAX = (Fault.COUNT, Fault.SYMBOL, Fault.DECIMAL)
"""Apache's reader checks no size of a block, no unused symbol, and no decimal's precision."""


_MOST_ITEMS = 10_000
"""No row here has bytes for more items. Items without bytes would go on for ever."""


class Strict(avro.io.BinaryDecoder):
    """A decoder that checks the types of values."""

    def read_boolean(self) -> bool:
        (byte,) = self.read(1)
        if byte > 1:
            raise ValueError("a boolean that is neither")
        return bool(byte)

    def skip_boolean(self) -> None:
        self.read_boolean()

    def read_int(self) -> int:
        number: int = self.read_long()
        if not -1 << 31 <= number < 1 << 31:
            raise ValueError("an int beyond 32 bits")
        return number

    def skip_int(self) -> None:
        self.read_int()

    def skip(self, n: int) -> None:
        self.read(n)


class Reader(avro.io.DatumReader):
    """A reader that passes over items one by one.

    Apache's own jumps over a block by its size, which may be wrong in a damaged row.
    """

    def skip_array(self, writers_schema: Any, decoder: Any) -> None:
        for _ in _items(decoder):
            self.skip_data(writers_schema.items, decoder)

    def skip_map(self, writers_schema: Any, decoder: Any) -> None:
        for _ in _items(decoder):
            decoder.skip_utf8()
            self.skip_data(writers_schema.values, decoder)


def _items(decoder: Any) -> Iterator[int]:
    while count := decoder.read_long():
        if count < 0:
            decoder.read_long()
        if abs(count) > _MOST_ITEMS:
            raise ValueError("more items than a row may have")
        yield from range(abs(count))


@st.composite
def evolved(draw: st.DrawFn, schema: Any) -> Any:
    """Draw another order, fewer fields, new fields with defaults, and promotions."""
    if schema in ("int", "long", "float") and draw(st.booleans()):
        return draw(st.sampled_from(PROMOTIONS[schema]))
    if kind_of(schema) != "record":
        return schema
    fields = [
        {**each, "type": draw(evolved(each["type"]))}
        for each in draw(st.permutations(schema["fields"]))
        if draw(st.integers(0, 4))
    ]
    for number, (added, default) in enumerate(draw(st.lists(st.sampled_from(ADDED[:7])))):
        fields.append({"name": f"added{number}", "type": added, "default": default})
    return {**schema, "fields": fields}


def read(writer: Any, reader: Any, row: bytes) -> Any:
    """Read one value. It must end at the end of the row."""
    one, other = (avro.schema.parse(json.dumps(bare(each))) for each in (writer, reader))
    source = io.BytesIO(row)
    value = Reader(one, other).read(Strict(source))
    if source.tell() != len(row):
        raise EOFError("bytes after the value")
    return tagged(value, reader)


def tagged(value: Any, schema: Any) -> Any:
    """Return fastavro's form: a record in a union has its name."""
    kind = kind_of(schema)
    if kind == "union":
        branch = next((each for each in schema if kind_of(each) == "record"), None)
        if isinstance(value, dict) and branch:
            return branch["name"], tagged(value, branch)
        found = [each for each in schema if each != "null"]
        return tagged(value, found[0]) if value is not None and len(found) == 1 else value
    if kind == "record":
        return {
            each["name"]: tagged(value[each["name"]], each["type"]) for each in schema["fields"]
        }
    if kind == "array":
        return [tagged(each, schema["items"]) for each in value]
    if kind == "map":
        return {name: tagged(each, schema["values"]) for name, each in value.items()}
    return value


@EACH
@drawn
@given(st.data(), EDITS)
def test_what_apache_reads_is_read_and_nothing_else(data: st.DataObject, edits: Any) -> None:
    writer = data.draw(records())
    reader = data.draw(evolved(writer))
    rows = written(writer, data.draw(st.lists(values(writer), min_size=1, max_size=4)))
    rows += [edited(row, edits) for row in rows]
    found = decoded(writer, reader, rows)
    for row, fault, value in zip(rows, found.status.tolist(), plain(found.array), strict=True):
        try:
            wanted = read(writer, reader, row)
        except (AvroException, ValueError, EOFError, AssertionError):
            assert fault
            continue
        assert (not fault and value == expected(wanted, reader)) or fault in LAX
