"""Original text of JSON values: for numbers, and for values in columns of strings."""

import codecs
import json
import re
from json import JSONDecoder
from typing import Any

import pyarrow as pa

from spark_kafka_source.secret import printable


class Number(str):
    """Number, as it is written."""

    __slots__ = ()


def decoder(*, constants: bool = True, control_characters: bool = False) -> JSONDecoder:
    """Return a decoder that keeps numbers as they are written.

    `constants` says whether it reads `NaN` and infinities. `control_characters` says whether
    strings may have them as they are. Decoding raises `ValueError`.
    """
    return JSONDecoder(
        parse_int=Number,
        parse_float=Number,
        parse_constant=Number if constants else _refused,
        strict=not control_characters,
    )


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number in JSON")


class NotAScalarError(Exception):
    """A string is wanted and an object or array was found. `with_texts` returns its text."""


DECODER = decoder()
_SCAN = decoder(control_characters=True).raw_decode
_MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""Byte order marks. That of UTF-32 begins with that of UTF-16."""
_MOST_SHOWN = 100
_SPACE = re.compile(r"[ \t\r\n]*")
_MARK = re.compile(r"[ \t\r\n]*([,:\]}])[ \t\r\n]*")


def marked(data: bytes) -> str:
    """Return the reason for a text that begins with a byte order mark, or an empty text."""
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            return f"it begins with the byte order mark (BOM) of {name}. JSON is UTF-8 without one"
    return ""


def shown(value: Any) -> str:
    """Return the JSON of a value, cut to a length that fits an error text."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if not isinstance(value, str):
        return json.dumps(value)
    cut, dots = value[:_MOST_SHOWN], "..." if len(value) > _MOST_SHOWN else ""
    text = cut if isinstance(value, Number) else json.dumps(cut, ensure_ascii=False)
    return printable(text) + dots


def with_texts(text: str, kind: pa.DataType) -> Any:
    """Parse `text`, which is sound. An object or array in place of a string becomes its text."""
    return _value(text, _space(text, 0), kind)[0]


def _value(text: str, at: int, kind: pa.DataType | None) -> tuple[Any, int]:
    """Return the value that begins at `at`, and the position after it."""
    first = text[at]
    if kind is not None and first in "{[":
        if pa.types.is_string(kind):
            end = _SCAN(text, at)[1]
            return text[at:end], end
        if first == "[" and pa.types.is_list(kind):
            return _array(text, at, kind.value_type)
        if first == "{" and pa.types.is_map(kind):
            return _object(text, at, {}, kind.item_type)
        if first == "{" and pa.types.is_struct(kind):
            return _object(text, at, {each.name: each.type for each in kind}, None)
    value_and_end: tuple[Any, int] = _SCAN(text, at)
    return value_and_end


def _object(
    text: str, at: int, kinds: dict[str, pa.DataType], other: pa.DataType | None
) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    mark, at = "{", _space(text, at + 1)
    if text[at] == "}":
        return fields, at + 1
    while mark != "}":
        name, at = _SCAN(text, at)
        _, at = _mark(text, at)
        fields[name], at = _value(text, at, kinds.get(name, other))
        mark, at = _mark(text, at)
    return fields, at


def _array(text: str, at: int, kind: pa.DataType) -> tuple[list[Any], int]:
    items: list[Any] = []
    mark, at = "[", _space(text, at + 1)
    if text[at] == "]":
        return items, at + 1
    while mark != "]":
        value, at = _value(text, at, kind)
        items.append(value)
        mark, at = _mark(text, at)
    return items, at


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _mark(text: str, at: int) -> tuple[str, int]:
    """Return the next mark, and the position of what follows it."""
    match = _MARK.match(text, at)
    return (match[1], match.end()) if match else ("", len(text))
