"""One value of Python's as a column of one row, checked: where it does not fit, by its path."""

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NoReturn

import pyarrow as pa

from spark_kafka_source.records import UnencodableRowError

_MOST_SHOWN = 100
_BYTES = (bytes, bytearray, memoryview)


def array_of_one(value: object, kind: pa.DataType) -> pa.Array:
    """Return the value as the only one of a column of this type.

    A struct is a dict, a list a list, and a map a dict or a list of pairs. Raises
    `UnencodableRowError` for what the type has no place for: Arrow would cut 1.5 to 1, and pass
    over a field that the type does not have.
    """
    _check(value, kind, "")
    try:
        return pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        _refuse("", str(error)[:_MOST_SHOWN])


def _check(value: Any, kind: pa.DataType, path: str) -> None:
    if value is None:
        return
    if pa.types.is_struct(kind):
        _check_struct(value, kind, path)
    elif pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        for key, item in _items(pairs, "a dict", value, path):
            _check(key, kind.key_type, f"{path}.key")
            _check(item, kind.item_type, f"{path}.value")
    elif pa.types.is_list(kind):
        for each in _items(value, "a list", value, path):
            _check(each, kind.value_type, f"{path}[]")
    elif not _is_of(value, kind):
        _refuse(path, f"{_shown(value)} is no {kind}")


def _check_struct(value: Any, kind: pa.DataType, path: str) -> None:
    if not isinstance(value, Mapping):
        _refuse(path, f"{_shown(value)} is no dict")
    fields = {each.name: each.type for each in kind}
    for name in value:
        if name not in fields:
            _refuse(_below(path, str(name)), f"there is no such field; known: {', '.join(fields)}")
    for name, each in fields.items():
        _check(value.get(name), each, _below(path, name))


def _items(items: Any, wanted: str, value: object, path: str) -> Iterable[Any]:
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        _refuse(path, f"{_shown(value)} is no {wanted.removeprefix('a ')}")
    return items


def _is_of(value: Any, kind: pa.DataType) -> bool:
    """Whether a value that is no container is of the type; Arrow says so of all but the usual."""
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_floating(kind):
        return isinstance(value, Real) and not isinstance(value, bool)
    is_other = (
        (pa.types.is_integer(kind) and isinstance(value, float | bool))
        or (pa.types.is_string(kind) and not isinstance(value, str))
        or (pa.types.is_binary(kind) and not isinstance(value, _BYTES))
    )
    if is_other:
        return False
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _refuse(path: str, reason: str) -> NoReturn:
    raise UnencodableRowError([0], f"{path}: {reason}" if path else reason)
