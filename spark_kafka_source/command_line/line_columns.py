"""Lines as columns for a producer: plain lines, lines with a key and a separator, or JSON.

The JSON is that of `tail --json`: its output can be the input of `produce --json`.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.command_line.lines import LineError, Piece
from spark_kafka_source.command_line.output import BASE64
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.timestamps import parse_timestamp

HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_INT32_END = 2**31


@dataclass(frozen=True, slots=True)
class Parsed:
    """The records of a piece, up to the first line that is no record.

    `lines` are the line numbers of the records. `error` names the line that is no record.
    """

    columns: pa.RecordBatch
    lines: Sequence[int]
    error: LineError | None = None


Parse = Callable[[Piece], Parsed]


def plain(separator: str | None) -> Parse:
    """Return a parser of lines. A line is a value, or with `separator` a key and a value."""
    return _values if separator is None else lambda piece: _keys_and_values(piece, separator)


def _values(piece: Piece) -> Parsed:
    lines = pa.array(piece.lines, pa.binary())
    return _parsed(piece, {"value": lines})


def _keys_and_values(piece: Piece, separator: str) -> Parsed:
    lines = pa.array(piece.lines, pa.binary())
    parts = pc.split_pattern(lines, separator, max_splits=1)
    alone = pc.index(pc.list_value_length(parts), 1).as_py()
    if alone < 0:
        return _parsed(piece, _two_of(parts))
    number = piece.first + alone
    error = LineError(number, number, f"has no {separator!r} between a key and a value")
    return _parsed(piece, _two_of(parts[:alone]), error)


def _two_of(parts: pa.ListArray) -> dict[str, pa.Array]:
    return {"key": pc.list_element(parts, 0), "value": pc.list_element(parts, 1)}


def _parsed(piece: Piece, columns: dict[str, pa.Array], error: LineError | None = None) -> Parsed:
    rows = pa.RecordBatch.from_pydict(columns)
    return Parsed(rows, range(piece.first, piece.first + rows.num_rows), error)


# -- JSON ------------------------------------------------------------------------------------------


class _NoRecordError(Exception):
    """The reason why a line is no record."""


def from_json(piece: Piece) -> Parsed:
    """Parse a piece whose lines are objects. Blank lines are skipped."""
    rows: list[tuple[Any, ...]] = []
    numbers: list[int] = []
    error = None
    for number, line in enumerate(piece.lines, piece.first):
        if not line.strip():
            continue
        try:
            rows.append(_row(line))
        except _NoRecordError as reason:
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
_FIELDS = {*_TYPES, "key" + BASE64, "value" + BASE64, *_PASSED_OVER}


def _row(line: bytes) -> tuple[Any, ...]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _NoRecordError(f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _NoRecordError("is not a JSON object")
    unknown = found.keys() - _FIELDS
    if unknown:
        raise _NoRecordError(f"has the unknown field {min(unknown)!r}; known: {', '.join(_TYPES)}")
    if not found.keys() & {"value", "value" + BASE64}:
        raise _NoRecordError("has no 'value'; it may be null")
    return (
        _bytes(found, "key"),
        _bytes(found, "value"),
        _headers(found.get("headers")),
        _timestamp(found.get("timestamp")),
        _partition(found.get("partition")),
    )


def _bytes(fields: dict[str, Any], name: str) -> bytes | None:
    encoded = fields.get(name + BASE64)
    if encoded is not None:
        return _decoded(name + BASE64, encoded)
    text = fields.get(name)
    if text is not None and not isinstance(text, str):
        expected = f"give a text, a null, or '{name}{BASE64}'"
        raise _NoRecordError(f"has a '{name}' that is neither a text nor null; {expected}")
    return None if text is None else _encoded(name, text)


def _encoded(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _NoRecordError(f"has a {name!r} that cannot be encoded: half a character") from None


def _decoded(name: str, text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        raise _NoRecordError(f"has a '{name}' that is not base64") from None


def _headers(headers: object) -> list[tuple[str, bytes | None]] | None:
    if not headers:
        return None
    if not isinstance(headers, list) or not all(isinstance(each, dict) for each in headers):
        raise _NoRecordError("has 'headers' that are not a list of objects with 'key' and 'value'")
    return [_header(each) for each in headers]


def _header(header: dict[str, Any]) -> tuple[str, bytes | None]:
    key = header.get("key")
    if not isinstance(key, str):
        raise _NoRecordError("has a header whose 'key' is not a text")
    _encoded("key", key)
    return key, _bytes(header, "value")


def _timestamp(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise _NoRecordError("has a 'timestamp' that is neither a text nor a whole number")
    try:
        return parse_timestamp("timestamp", given)
    except ConfigurationError as error:
        raise _NoRecordError(
            f"has a 'timestamp' that cannot be used: {error.found}. {error.expected}"
        ) from None


def _partition(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < _INT32_END:
        raise _NoRecordError("has a 'partition' that is not a whole number from 0")
    return given
