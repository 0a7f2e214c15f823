"""One Python value as a column of one row, checked strictly. Errors have the path of the value.

A struct is a dict. A list is a list. A map is a dict or a list of pairs. Without these checks Arrow
would cut 1.5 to 1, and ignore a field that the type does not have.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from spark_kafka_source.records import UnencodableRowError

_MOST_SHOWN = 100
_BYTES = (bytes, bytearray, memoryview)
_ALONE = (str, *_BYTES)
"""Types that are iterable but do not count as lists."""


def array_of_one(value: object, kind: pa.DataType, path: str = "") -> pa.Array:
    """Return a column of this type with only this value. Raises `UnencodableRowError`."""
    _check(value, kind, path)
    try:
        return pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        refuse(path, str(error)[:_MOST_SHOWN])


def known_fields(value: Any, names: Collection[str], path: str) -> None:
    """Raise `UnencodableRowError` if the value is not a dict, or has a field beyond these."""
    if not isinstance(value, Mapping):
        refuse(path, f"{_shown(value)} is no dict")
    for name in value:
        if name not in names:
            reason = f"there is no such field; known: {', '.join(names)}"
            refuse(_below(path, str(name)[:_MOST_SHOWN]), reason)


def items_of(value: Any, path: str) -> Sequence[Any]:
    """Return the items of a list or another iterable. Raises `UnencodableRowError`."""
    if isinstance(value, (*_ALONE, Mapping)) or not isinstance(value, Iterable):
        refuse(path, f"{_shown(value)} is no list")
    return value if isinstance(value, list | tuple) else list(value)


def pairs_of(value: Any, path: str) -> Sequence[tuple[Any, Any]]:
    """Return the entries of a map, given as a dict or as pairs. Raises `UnencodableRowError`."""
    if isinstance(value, Mapping):
        return list(value.items())
    pairs = None if isinstance(value, _ALONE) else value
    if not isinstance(pairs, Iterable):
        refuse(path, f"{_shown(value)} is no dict")
    found = [tuple(each) if isinstance(each, list | tuple) else () for each in pairs]
    if any(len(each) != 2 for each in found):
        refuse(path, f"{_shown(value)} is no dict, nor a list of pairs")
    return found


def converted(path: str, value: Any, kind: pa.DataType) -> Any:
    """Convert a value to an Arrow scalar of a non-nested type. Raises `UnencodableRowError`."""
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        no_such_value(path, value, kind)


def no_such_value(path: str, value: object, kind: pa.DataType) -> NoReturn:
    """Raise `UnencodableRowError` for a value of the wrong type."""
    refuse(path, f"{_shown(value)} is no {kind}")


def refuse(path: str, reason: str) -> NoReturn:
    """Raise `UnencodableRowError` with this path and reason."""
    raise UnencodableRowError([0], f"{path}: {reason}" if path else reason)


def _check(value: Any, kind: pa.DataType, path: str) -> None:
    if value is None:
        return
    if pa.types.is_struct(kind):
        fields = {each.name: each.type for each in kind}
        known_fields(value, fields, path)
        for name, each in fields.items():
            _check(value.get(name), each, _below(path, name))
    elif pa.types.is_map(kind):
        for key, item in pairs_of(value, path):
            _check(key, kind.key_type, f"{path}{{}}")
            _check(item, kind.item_type, f"{path}{{}}")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        for each in items_of(value, path):
            _check(each, kind.value_type, f"{path}[]")
    elif _is_other(value, kind):
        no_such_value(path, value, kind)
    else:
        converted(path, value, kind)


def _is_other(value: Any, kind: pa.DataType) -> bool:
    """Whether Arrow would wrongly accept the value for the type."""
    if isinstance(value, bool):
        return not pa.types.is_boolean(kind)
    if pa.types.is_integer(kind):
        return isinstance(value, float)
    if pa.types.is_string(kind):
        return not isinstance(value, str)
    return bool(pa.types.is_binary(kind)) and not isinstance(value, _BYTES)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
