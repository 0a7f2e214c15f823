"""Encoder from one Python value to a JSON text: a function for each type.

`encode` is for columns.
"""

import json
from collections.abc import Callable
from operator import index
from typing import Any

import pyarrow as pa

from spark_kafka_source.values.json.encode import encode
from spark_kafka_source.values.one_value import (
    array_of_one,
    items_of,
    known_fields,
    no_such_value,
    pairs_of,
)

Text = Callable[[Any], str]
"""Returns the text of a value that is not None. Raises `UnencodableRowError`."""


def text_of_one(kind: pa.DataType, path: str = "") -> Text:
    """Return a writer of texts for values, which are as `Array.to_pylist` of the type has them."""
    if pa.types.is_struct(kind):
        return _object(kind, path)
    if pa.types.is_map(kind):
        return _map(kind, path)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(text_of_one(kind.value_type, f"{path}[]"), path)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _string(kind, path)
    return _integer(kind, path) if pa.types.is_integer(kind) else _other(kind, path)


def _object(kind: pa.DataType, path: str) -> Text:
    texts = {
        each.name: text_of_one(each.type, f"{path}.{each.name}" if path else each.name)
        for each in kind
    }
    names = {name: f"{json.dumps(name, ensure_ascii=False)}:" for name in texts}

    def text(value: Any) -> str:
        known_fields(value, names, path)
        there = ((name, value.get(name)) for name in names)
        # Null fields are left out.
        fields = [names[name] + texts[name](each) for name, each in there if each is not None]
        return f"{{{','.join(fields)}}}"

    return text


def _map(kind: pa.DataType, path: str) -> Text:
    key = text_of_one(kind.key_type, f"{path}{{}}")
    item = _or_null(text_of_one(kind.item_type, f"{path}{{}}"))

    def text(value: Any) -> str:
        pairs = pairs_of(value, path)
        if any(name is None for name, _ in pairs):
            no_such_value(path, value, kind)
        return f"{{{','.join(f'{key(name)}:{item(each)}' for name, each in pairs)}}}"

    return text


def _list(item: Text, path: str) -> Text:
    text = _or_null(item)
    return lambda value: f"[{','.join(map(text, items_of(value, path)))}]"


def _or_null(text: Text) -> Text:
    return lambda value: "null" if value is None else text(value)


def _string(kind: pa.DataType, path: str) -> Text:
    def text(value: Any) -> str:
        if not isinstance(value, str):
            no_such_value(path, value, kind)
        try:
            value.encode()
        except UnicodeEncodeError:
            no_such_value(path, value, kind)
        return json.dumps(value, ensure_ascii=False)

    return text


def _integer(kind: pa.DataType, path: str) -> Text:
    is_signed, bits = pa.types.is_signed_integer(kind), kind.bit_width
    numbers = range(-(1 << bits - 1), 1 << bits - 1) if is_signed else range(1 << bits)

    def text(value: Any) -> str:
        try:
            number = index(value)
        except TypeError:
            no_such_value(path, value, kind)
        if isinstance(value, bool) or number not in numbers:
            no_such_value(path, value, kind)
        return str(number)

    return text


def _other(kind: pa.DataType, path: str) -> Text:
    """Return the writer for types that Arrow formats itself: it uses a column of one row."""

    def text(value: Any) -> str:
        found: bytes = encode(array_of_one(value, kind, path))[0].as_py()
        return found.decode()

    return text
