"""The JSON form of typed values: `tail --json` prints it, and `produce` reads it back.

The Arrow type of a value says what its form is, since Python's objects do not tell an empty map
from an empty list. docs/command-line.md has the table. Durations are those of Protobuf's JSON
(https://protobuf.dev/programming-guides/json/). Times are ISO 8601.
"""

import base64
import binascii
import datetime
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.records.plain_types import is_any
from spark_kafka_source.values.fitting import below

Convert = Callable[[Any], Any]

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MICROS_PER_SECOND = 1_000_000
_MOST_SHOWN = 100


# -- values to JSON --------------------------------------------------------------------------------


def to_json_form(kind: pa.DataType) -> Convert:
    """Return a function from values of this type, as `Array.to_pylist` has them, to their JSON.

    It returns something for every object. One that is not of the type is shown as what it is.
    """
    if is_any(kind, "struct"):
        return partial(_object, {field.name: to_json_form(field.type) for field in kind})
    if is_any(kind, "map"):
        names = is_any(kind.key_type, "string")
        return partial(_entries, names, to_json_form(kind.key_type), to_json_form(kind.item_type))
    if is_any(kind, "list", "large_list"):
        return partial(_array, to_json_form(kind.value_type))
    return shown


def shown(value: Any) -> Any:
    """Return the JSON of any object. An unknown one is a text."""
    for kinds, form in _FORMS:
        if isinstance(value, kinds):
            return form(value)
    return str(value)


def _object(fields: Mapping[str, Convert], value: Any) -> Any:
    if not isinstance(value, Mapping):
        return shown(value)
    return {str(name): fields.get(name, shown)(each) for name, each in value.items()}


def _array(item: Convert, value: Any) -> Any:
    return [item(each) for each in value] if isinstance(value, list | tuple) else shown(value)


def _entries(has_names: bool, key: Convert, item: Convert, value: Any) -> Any:
    """Return an object, or pairs if keys are no texts, or if a key is there twice."""
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list):
        return shown(value)
    entries = [[key(name), item(entry)] for name, entry in pairs]
    if not has_names or len({name for name, _ in pairs}) < len(pairs):
        return entries
    return dict(entries)


def _name_of(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _duration_text(value: datetime.timedelta) -> str:
    micros = value // datetime.timedelta(microseconds=1)
    seconds, rest = divmod(abs(micros), _MICROS_PER_SECOND)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if micros < 0 else ''}{seconds}{fraction}s"


_FORMS: tuple[tuple[Any, Convert], ...] = (
    ((type(None), str, int), lambda value: value),
    (float, lambda value: value if math.isfinite(value) else _name_of(value)),
    (bytes, lambda value: base64.b64encode(value).decode()),
    (Decimal, lambda value: format(value, "f")),
    (datetime.timedelta, _duration_text),
    ((datetime.date, datetime.time), lambda value: value.isoformat()),
    (Mapping, partial(_object, {})),
    ((list, tuple), partial(_array, shown)),
)

# -- JSON to values --------------------------------------------------------------------------------


def from_json_form(kind: pa.DataType, path: str = "") -> Convert:
    """Return a function from the JSON form of this type to values for `TypedWrite.one`.

    It takes JSON as `json_text.read` returns it, and raises `UnencodableRowError` for a text or a
    number that has no value of the type. What is not of the form stays as it is. `one` judges that
    as it does for `KafkaProducer.send`: an unknown field, a text for a number, a number for a time.
    """
    if is_any(kind, "struct"):
        fields = {field.name: from_json_form(field.type, below(path, field.name)) for field in kind}
        return partial(_struct, fields)
    if is_any(kind, "list", "large_list"):
        return partial(_list, from_json_form(kind.value_type, f"{path}[]"))
    if is_any(kind, "map"):
        parts = (from_json_form(each, f"{path}{{}}") for each in (kind.key_type, kind.item_type))
        return partial(_map_of_names if is_any(kind.key_type, "string") else _map, path, *parts)
    return _leaf(kind, path)


def _leaf(kind: pa.DataType, path: str) -> Convert:
    if is_any(kind, "floating"):
        return partial(_float, path)
    if is_any(kind, "timestamp"):
        return partial(_text, _MOMENT if kind.tz else _LOCAL_MOMENT, path)
    for name, read in _READ.items():
        if is_any(kind, name):
            return partial(_text, read, path)
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return float(value) if type(value) is Decimal else value


def _struct(fields: Mapping[str, Convert], value: Any) -> Any:
    if type(value) is not dict:
        return _as_it_is(value)
    return {name: fields.get(name, _as_it_is)(each) for name, each in value.items()}


def _list(item: Convert, value: Any) -> Any:
    return [item(each) for each in value] if type(value) is list else _as_it_is(value)


def _map_of_names(path: str, key: Convert, item: Convert, value: Any) -> Any:
    if type(value) is dict:
        return {name: item(each) for name, each in value.items()}
    return _map(path, key, item, value)


def _map(path: str, key: Convert, item: Convert, value: Any) -> Any:
    if type(value) is dict:
        _refuse(path, "an object, where the keys are no texts: give a list of [key, value]")
    if type(value) is not list:
        return _as_it_is(value)
    if any(type(entry) is not list or len(entry) != 2 for entry in value):
        _refuse(path, "a list, where each entry of a map is a list of [key, value]")
    return [(key(name), item(entry)) for name, entry in value]


def _float(path: str, value: Any) -> Any:
    if type(value) is str:
        return _NON_FINITE.get(value, value)
    number = _as_it_is(value)
    if type(number) is float and math.isinf(number):
        _refuse(path, f"{_short(str(value))} is beyond the range of a double")
    return number


def _text(read: Callable[[str], Any], path: str, value: Any) -> Any:
    """Return the value of a text."""
    if type(value) is not str:
        return value
    try:
        return read(value)
    except ValueError as error:
        _refuse(path, f"{_short(repr(value))} is no {error}")


def _refuse(path: str, reason: str) -> NoReturn:
    raise UnencodableRowError([0], f"{path}: {reason}" if path else reason)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


# -- the texts of values ---------------------------------------------------------------------------
# Each function raises `ValueError` with the name of what a text should be, and an example.

_DECIMAL = re.compile(r"-?[0-9]{1,80}(\.[0-9]{1,80})?([eE][+-]?[0-9]{1,3})?")
_DURATION = re.compile(r"(-?)([0-9]{1,13})(?:\.([0-9]{1,9}))?s")
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME_OF_DAY = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.([0-9]{1,9}))?)?"
_ZONE = "(?:Z|[+-][0-9]{2}:[0-9]{2})"
_MICRO_DIGITS = 6


def _decimal(text: str) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise ValueError("decimal number, as '12.50'")
    return Decimal(text)


def _bytes(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise ValueError("base64") from None


def _duration(text: str) -> datetime.timedelta:
    match = _DURATION.fullmatch(text)
    if not match or _is_finer(match[3]):
        raise ValueError("duration in seconds, with at most six digits after the point, as '1.5s'")
    micros = int(match[2]) * _MICROS_PER_SECOND
    micros += int(f"{match[3] or '':0<{_MICRO_DIGITS}}"[:_MICRO_DIGITS])
    return datetime.timedelta(microseconds=-micros if match[1] else micros)


def _iso(pattern: str, parse: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    """Return a reader of ISO 8601. Alone, `parse` takes more, and drops digits after the sixth."""
    is_whole = re.compile(pattern).fullmatch

    def read(text: str) -> Any:
        match = is_whole(text)
        if match and not (match.lastindex and _is_finer(match[1])):
            with suppress(ValueError):
                return parse(text)
        raise ValueError(what)

    return read


def _is_finer(fraction: str | None) -> bool:
    """Whether a fraction of a second has more than microseconds."""
    return bool((fraction or "")[_MICRO_DIGITS:].strip("0"))


_READ: Mapping[str, Callable[[str], Any]] = {
    "decimal": _decimal,
    "binary": _bytes,
    "duration": _duration,
    "date": _iso(_DAY, datetime.date.fromisoformat, "date, as '2026-11-25'"),
    "time": _iso(_TIME_OF_DAY, datetime.time.fromisoformat, "time of day, as '12:30:00.000001'"),
}
_MOMENT = _iso(
    f"{_DAY}[T ]{_TIME_OF_DAY}{_ZONE}",
    datetime.datetime.fromisoformat,
    "time with a zone, as '2026-11-25T12:30:00.000001Z'",
)
_LOCAL_MOMENT = _iso(
    f"{_DAY}[T ]{_TIME_OF_DAY}",
    datetime.datetime.fromisoformat,
    "time without a zone, as '2026-11-25T12:30:00.000001'",
)
