"""Lines as columns for a producer: plain lines, lines with a key and a separator, or JSON.

The JSON is that of `tail --json`: its output can be the input of `produce --json`.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.command_line import json_text
from spark_kafka_source.command_line.input_lines import LineError, Lines
from spark_kafka_source.command_line.json_text import NotJsonError
from spark_kafka_source.command_line.output import BASE64
from spark_kafka_source.command_line.serializers import (
    PLAIN,
    NoRecordError,
    Serializer,
    Serializers,
)
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.timestamps import parse_timestamp

HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_INT32_END = 2**31


@dataclass(frozen=True, slots=True)
class Parsed:
    """The records of some lines, up to the first line that is no record.

    `lines` are the line numbers of the records. `error` names the line that is no record.
    """

    columns: pa.RecordBatch
    lines: Sequence[int]
    error: LineError | None = None


Parse = Callable[[Lines], Parsed]


def plain(separator: str | None) -> Parse:
    """Return a parser of lines. A line is a value, or with `separator` a key and a value."""
    return _values if separator is None else lambda given: _keys_and_values(given, separator)


def _values(given: Lines) -> Parsed:
    lines = pa.array(given.lines, pa.binary())
    return _parsed(given, {"value": lines})


def _keys_and_values(given: Lines, separator: str) -> Parsed:
    lines = pa.array(given.lines, pa.binary())
    parts = pc.split_pattern(lines, separator, max_splits=1)
    alone = pc.index(pc.list_value_length(parts), 1).as_py()
    if alone < 0:
        return _parsed(given, _two_of(parts))
    number = given.first + alone
    error = LineError(number, number, f"has no {separator!r} between a key and a value")
    return _parsed(given, _two_of(parts[:alone]), error)


def _two_of(parts: pa.ListArray) -> dict[str, pa.Array]:
    return {"key": pc.list_element(parts, 0), "value": pc.list_element(parts, 1)}


def serialized(parse: Parse, serializers: Serializers) -> Parse:
    """Return a parser that calls `parse`, and serializes the keys and values that it finds."""

    def read(given: Lines) -> Parsed:
        parsed = parse(given)
        for part in serializers.keys() & set(parsed.columns.schema.names):
            parsed = _serialized(parsed, part, serializers[part])
        return parsed

    return read


def _serialized(parsed: Parsed, part: str, serializer: Serializer) -> Parsed:
    """Return the records up to the first line whose part has no bytes."""
    encoded: list[bytes | None] = []
    error = parsed.error
    for data in parsed.columns[part].to_pylist():
        try:
            encoded.append(serializer.of_line(data))
        except NoRecordError as reason:
            line = parsed.lines[len(encoded)]
            error = LineError(line, line, str(reason))
            break
    rows = parsed.columns.slice(0, len(encoded))
    columns = {name: rows[name] for name in rows.schema.names} | {
        part: pa.array(encoded, pa.binary())
    }
    return Parsed(pa.RecordBatch.from_pydict(columns), parsed.lines[: len(encoded)], error)


def _parsed(given: Lines, columns: dict[str, pa.Array], error: LineError | None = None) -> Parsed:
    rows = pa.RecordBatch.from_pydict(columns)
    return Parsed(rows, range(given.first, given.first + rows.num_rows), error)


# -- JSON ------------------------------------------------------------------------------------------


def from_json(given: Lines, serializers: Serializers = PLAIN) -> Parsed:
    """Parse lines that are objects. Blank lines are skipped."""
    rows: list[tuple[Any, ...]] = []
    numbers: list[int] = []
    error = None
    for number, line in enumerate(given.lines, given.first):
        if not line.strip():
            continue
        try:
            rows.append(_row(line, serializers))
        except NoRecordError as reason:
            error = LineError(number, number, str(reason))
            break
        numbers.append(number)
    return Parsed(_columns(rows), numbers, error)


def _columns(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return the value column, and the other columns that have data in some row."""
    lists = zip(*rows, strict=True) if rows else ((),) * len(_TYPES)
    named = zip(_TYPES, lists, strict=True)
    return pa.RecordBatch.from_pydict(
        {
            name: pa.array(values, _TYPES[name])
            for name, values in named
            if name == "value" or any(each is not None for each in values)
        }
    )


_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS_TYPE,
    "timestamp": pa.int64(),
    "partition": pa.int32(),
}
# `tail` writes the place of a record. `produce` has its own topic, and Kafka gives the offset.
_PASSED_OVER = {"topic", "offset"}
_ERROR = "_error"
_FIELDS = {*_TYPES, *(part + more for part in PLAIN for more in (BASE64, _ERROR)), *_PASSED_OVER}


def _row(line: bytes, serializers: Serializers) -> tuple[Any, ...]:
    try:
        fields = json_text.read(line)
    except NotJsonError as error:
        raise NoRecordError(str(error)) from None
    if not isinstance(fields, dict):
        raise NoRecordError("is not a JSON object")
    unknown = fields.keys() - _FIELDS
    if unknown:
        raise NoRecordError(f"has the unknown field {min(unknown)!r}; known: {', '.join(_TYPES)}")
    if not fields.keys() & {"value", "value" + BASE64}:
        raise NoRecordError("has no 'value'; it may be null")
    return (
        *(_of_part(fields, part, serializers[part]) for part in PLAIN),
        _headers(fields.get("headers")),
        _timestamp(fields.get("timestamp")),
        _partition(fields.get("partition")),
    )


def _of_part(fields: dict[str, Any], part: str, serializer: Serializer) -> bytes | None:
    error = fields.get(part + _ERROR)
    if error is not None and fields.get(part + BASE64) is None:
        reason = error.get("reason") if isinstance(error, dict) else error
        raise NoRecordError(
            f"is a bad record: its {part} could not be decoded ({reason}). "
            f"Give its bytes as '{part}{BASE64}', or read the topic without '{part}.format'"
        )
    return _bytes(fields, part, serializer)


def _bytes(fields: dict[str, Any], name: str, serializer: Serializer) -> bytes | None:
    """Return the bytes in base64 as they are, or else those of the JSON value."""
    encoded = fields.get(name + BASE64)
    if encoded is not None:
        return _decoded(name + BASE64, encoded)
    return serializer.of_json(fields.get(name))


def _decoded(name: str, text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        raise NoRecordError(f"has a '{name}' that is not base64") from None


def _headers(headers: object) -> list[tuple[str, bytes | None]] | None:
    if not headers:
        return None
    if not isinstance(headers, list) or not all(isinstance(header, dict) for header in headers):
        raise NoRecordError("has 'headers' that are not a list of objects with 'key' and 'value'")
    return [_header(header) for header in headers]


def _header(header: dict[str, Any]) -> tuple[str, bytes | None]:
    key = header.get("key")
    if not isinstance(key, str):
        raise NoRecordError("has a header whose 'key' is not a text")
    PLAIN["key"].of_json(key)  # Raises for half a character.
    return key, _bytes(header, "value", PLAIN["value"])


def _timestamp(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise NoRecordError("has a 'timestamp' that is neither a text nor a whole number")
    try:
        return parse_timestamp("timestamp", given)
    except ConfigurationError as error:
        raise NoRecordError(
            f"has a 'timestamp' that cannot be used: {error.found}. {error.expected}"
        ) from None


def _partition(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < _INT32_END:
        raise NoRecordError("has a 'partition' that is not a whole number from 0")
    return given
