"""fastavro's results in the form of our columns."""

import io
import json
from collections.abc import Sequence
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from spark_kafka_source.values import Decoded, Encoded
from spark_kafka_source.values.avro import Program, ReaderSchema, decode, parse_schema, resolve
from tests.values.avro_schemas import DEFAULT_BYTES, kind_of

_WIDE = Context(prec=60)


def bare(schema: Any) -> Any:
    """Return the schema without logical types: fastavro then returns the underlying values."""
    if isinstance(schema, list):
        return [bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in ("default", "symbols", "aliases", "name") else
        [bare_field(each) for each in value] if key == "fields" else bare(value)
        for key, value in schema.items()
        if key not in ("logicalType", "precision", "scale")
    }  # fmt: skip


def bare_field(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": bare(schema["type"])}


def written(schema: Any, values: Sequence[Any]) -> list[bytes]:
    parsed = fastavro.parse_schema(bare(schema))
    found = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        found.append(out.getvalue())
    return found


def read(writer: Any, reader: Any, data: bytes) -> Any:
    """Read one value. It must end at the end of the bytes."""
    source = io.BytesIO(data)
    value: Any = fastavro.schemaless_reader(
        source, fastavro.parse_schema(bare(writer)), fastavro.parse_schema(bare(reader)),
        return_record_name=True, return_named_type=False,
    )  # fmt: skip
    if source.tell() != len(data):
        raise EOFError("bytes after the value")
    return value


def laid(rows: Sequence[bytes], gap: bytes = b"\xff\x01") -> tuple[bytes, Any, Any]:
    """Lay the rows into one buffer, with gaps. Return the bytes, starts and ends."""
    sizes = np.array([len(row) for row in rows], np.int64)
    starts = np.cumsum(sizes + len(gap)) - sizes
    return b"".join(gap + row for row in rows), starts, starts + sizes


def program(writer: Any, reader: Any) -> tuple[ReaderSchema, Program]:
    read_with = ReaderSchema.of(parse_schema(json.dumps(reader)))
    return read_with, resolve(parse_schema(json.dumps(writer)), read_with)


def decoded(writer: Any, reader: Any, rows: Sequence[bytes]) -> Decoded:
    read_with, resolved = program(writer, reader)
    found = decode(read_with.layout, [resolved], Encoded(*laid(rows)))
    found.array.validate(full=True)
    assert found.array.type == read_with.arrow_type
    assert len(found.array) == len(rows)
    return found


def plain(array: pa.Array) -> list[Any]:
    """Return rows as Python values. Times are numbers, since some are beyond Python's range."""
    kind = array.type
    found: list[Any]
    if pa.types.is_struct(kind):
        columns = [plain(array.field(place)) for place in range(kind.num_fields)]
        names = [each.name for each in kind]
        found = [dict(zip(names, row, strict=True)) for row in _rows(columns, len(array))]
    elif pa.types.is_list(kind):
        found = _parts(array, plain(array.values))
    elif pa.types.is_map(kind):
        entries = list(zip(plain(array.keys), plain(array.items), strict=True))
        found = [dict(each) for each in _parts(array, entries)]
    elif pa.types.is_temporal(kind):
        return list(array.view(pa.int32() if pa.types.is_date(kind) else pa.int64()).to_pylist())
    else:
        return [repr(each) if isinstance(each, float) else each for each in array.to_pylist()]
    valid = array.is_valid().to_pylist()
    return [each if there else None for each, there in zip(found, valid, strict=True)]


def _rows(columns: list[list[Any]], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _parts(array: pa.Array, items: list[Any]) -> list[list[Any]]:
    return [items[start:stop] for start, stop in pairwise(array.offsets.to_pylist())]


def expected(value: Any, reader: Any) -> Any:
    """Return fastavro's result in the form of `plain`."""
    kind = kind_of(reader)
    if kind == "bytes" and isinstance(value, str):
        # fastavro leaves defaults in their JSON form, and a writer's text as text.
        value = value.encode("latin-1" if value == DEFAULT_BYTES else "utf-8")
    if kind == "union":
        return _of_union(value, reader)
    if kind == "record":
        value = value[1] if isinstance(value, tuple) else value
        return {
            each["name"]: expected(value[each["name"]], each["type"]) for each in reader["fields"]
        }
    if kind == "array":
        return [expected(each, reader["items"]) for each in value]
    if kind == "map":
        return {key: expected(each, reader["values"]) for key, each in value.items()}
    if isinstance(reader, dict) and (name := reader.get("logicalType")):
        if name == "decimal":
            number = int.from_bytes(value, signed=True)
            return Decimal(number).scaleb(-reader["scale"], _WIDE)
        return value * 1000 if name.endswith("timestamp-millis") else value
    if kind in ("float", "double"):
        # Java's promotion: a value read as a float has a float's bits.
        return repr(float(np.float32(value) if kind == "float" else value))
    return value


def _of_union(value: Any, reader: list[Any]) -> Any:
    found = [each for each in reader if each != "null"]
    kinds = {each if isinstance(each, str) else "" for each in found}
    if value is None or not found:
        return None
    if kinds == {"int", "long"} or len(found) == 1:
        return expected(value, found[0])
    if kinds == {"float", "double"}:
        return repr(float(value))
    chosen = next(place for place, each in enumerate(found) if _is_of(value, each))
    return {
        f"member{place}": expected(value, each) if place == chosen else None
        for place, each in enumerate(found)
    }


def _is_of(value: Any, schema: Any) -> bool:
    kinds: dict[str, type] = {
        "boolean": bool, "int": int, "long": int, "float": float, "double": float,
        "string": str, "bytes": bytes,
    }  # fmt: skip
    kind = kind_of(schema)
    if kind == "record":
        return isinstance(value, tuple) and value[0] == schema["name"]
    return type(value) is kinds[kind]


def agrees(
    writer: Any, reader: Any, rows: Sequence[bytes], status: Any, values: Sequence[Any]
) -> None:
    """Check that each row equals fastavro's result, or is malformed."""
    for row, fault, value in zip(rows, status.tolist(), values, strict=True):
        if fault:
            assert value is None
            continue
        try:
            wanted = expected(read(writer, reader, row), reader)
        except UnicodeDecodeError:
            continue  # fastavro also checks strings read as bytes. Arrow checks only strings.
        assert value == wanted
