"""Encoder from one Python value of a type to a JSON text, by the same rules as for a column.

Types are strict: an `int` is no boolean, a `float` is no integer, a `datetime` is no date, and a
`datetime` has a time zone where the type has one. `shaped` is for values of a JSON Schema.
"""

import binascii
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from spark_kafka_source.values import one_value
from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.fitting import below, no_such_field
from spark_kafka_source.values.json.encode import text_of_leaf
from spark_kafka_source.values.json.fit import free
from spark_kafka_source.values.one_value import (
    items_of,
    known_fields,
    no_such_value,
    pairs_of,
    refuse,
)

Text = Callable[[Any, str], str]
"""Returns the text of a value that is not None. Raises `UnencodableRowError` with the path."""

_MOST_SHOWN = 100
_EPOCH = datetime(1970, 1, 1)


def text_of_one(kind: pa.DataType, ignored: Collection[str] = (), *, nulls: bool = False) -> Text:
    """Return a writer of texts for values of a type, as `Array.to_pylist` of the type has them.

    Dicts may have the fields whose paths are `ignored`. They are left out. So are fields that are
    null, unless `nulls` are written. Fields that are not nullable must be there. Raises
    `UnfitColumnError` for a type that JSON has no place for.
    """
    if pa.types.is_struct(kind):
        return _object(kind, ignored, nulls=nulls)
    if pa.types.is_map(kind):
        return _map(text_of_one(kind.item_type, ignored, nulls=nulls))
    if pa.types.is_list(kind):
        return _list(text_of_one(kind.value_type, ignored, nulls=nulls))
    return leaf(kind, free(kind).kind)


def _object(kind: pa.DataType, ignored: Collection[str], *, nulls: bool) -> Text:
    texts = {each.name: _or_null(text_of_one(each.type, ignored, nulls=nulls)) for each in kind}
    names = {name: f"{string(name, '')}:" for name in texts}
    never_null = [each.name for each in kind if not each.nullable]

    def text(value: Any, path: str) -> str:
        known_fields(value, names, path, ignored)
        for name in never_null:
            if value.get(name) is None:
                found = "null" if name in value else "it is missing"
                refuse(below(path, name), f"{found}, where the schema has NOT NULL")
        there = ((name, value.get(name)) for name in names)
        fields = (
            names[name] + texts[name](each, below(path, name))
            for name, each in there
            if nulls or each is not None
        )
        return f"{{{','.join(fields)}}}"

    return text


def _map(of_item: Text) -> Text:
    item = _or_null(of_item)

    def text(value: Any, path: str) -> str:
        inner = f"{path}{{}}"
        pairs = entries(value, path)
        return (
            f"{{{','.join(f'{string(name, inner)}:{item(each, inner)}' for name, each in pairs)}}}"
        )

    return text


def _list(item: Text) -> Text:
    text = _or_null(item)

    def texts(value: Any, path: str) -> str:
        inner = f"{path}[]"
        return f"[{','.join([text(each, inner) for each in items_of(value, path)])}]"

    return texts


def _or_null(text: Text) -> Text:
    return lambda value, path: "null" if value is None else text(value, path)


def entries(value: Any, path: str) -> Iterable[tuple[Any, Any]]:
    """Return the entries of a map, given as a dict or as pairs. Raises `UnencodableRowError`.

    Each key is a string, and comes once.
    """
    pairs = pairs_of(value, path)
    for name, _ in pairs:
        if not isinstance(name, str):
            no_such_value(f"{path}{{}}", name, pa.string())
    if not isinstance(value, Mapping) and len({name for name, _ in pairs}) < len(pairs):
        refuse(path, f"{quoted(value)} has a key twice")
    return pairs


def unknown(name: object, names: Iterable[str], path: str) -> NoReturn:
    """Raise `UnencodableRowError` for a field that the schema does not have."""
    text = str(name)[:_MOST_SHOWN]
    shown, advice = no_such_field(text, names, path)
    refuse(below(path, text), f"{shown}. {advice}")


# -- values that are no objects and no arrays ------------------------------------------------------


def leaf(kind: pa.DataType, written: pa.DataType) -> Text:
    """Return the writer for values of a type, which a column has as the type `written`."""
    if pa.types.is_integer(kind):
        return lambda value, path: str(one_value.whole(value, kind, path))
    if pa.types.is_floating(written):
        return partial(_real, written)
    return partial(_decimal, written) if pa.types.is_decimal(written) else _LEAVES[written]


def _real(kind: pa.DataType, value: Any, path: str) -> str:
    return text_of_leaf(one_value.real(value, kind, path), kind)


def _decimal(kind: pa.DataType, value: Any, path: str) -> str:
    number = one_value.unscaled(value, kind, path)
    digits = tuple(map(int, str(abs(number))))
    return str(Decimal((int(number < 0), digits, -kind.scale)))


def boolean(value: Any, path: str) -> str:
    """Return the text of a `bool`."""
    return "true" if one_value.boolean(value, path) else "false"


def string(value: Any, path: str) -> str:
    """Return the text of a `str` that UTF-8 has a place for."""
    one_value.text(value, path)
    return json.dumps(value, ensure_ascii=False)


def base64(value: Any, path: str) -> str:
    """Return the text of bytes."""
    data = one_value.octets(value, path)
    return f'"{binascii.b2a_base64(data, newline=False).decode()}"'


def day(value: Any, path: str) -> str:
    """Return the text of a `date` that is no `datetime`."""
    one_value.moment(value, pa.date32(), path)
    return f'"{value.isoformat()}"'


def moment(value: Any, path: str) -> str:
    """Return the text of a `datetime` with a time zone, in UTC."""
    return _time(TIMESTAMP, "Z", value, path)


def local_time(value: Any, path: str) -> str:
    """Return the text of a `datetime` without a time zone."""
    return _time(TIMESTAMP_NTZ, "", value, path)


def _time(kind: pa.DataType, zone: str, value: Any, path: str) -> str:
    micros = one_value.moment(value, kind, path)
    try:
        time = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:  # In UTC its year may be 0 or 10000.
        return text_of_leaf(micros, kind)
    return f'"{time.isoformat(timespec="microseconds")}{zone}"'


def _null(value: Any, path: str) -> NoReturn:
    one_value.no_such_value(path, value, pa.null())


_LEAVES: Mapping[pa.DataType, Text] = {
    pa.null(): _null,
    pa.bool_(): boolean,
    pa.string(): string,
    pa.binary(): base64,
    pa.date32(): day,
    TIMESTAMP: moment,
    TIMESTAMP_NTZ: local_time,
}
