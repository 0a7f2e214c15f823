"""JSON texts of single Python values that are no objects and no arrays.

`one_value` says which values are of a type.
"""

import binascii
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from spark_kafka_source.values import one_value
from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ
from spark_kafka_source.values.json.encode import text_of_leaf

Text = Callable[[Any, str], str]
"""Returns the text of a value that is not None. Raises `UnencodableRowError` with the path."""

_EPOCH = datetime(1970, 1, 1)


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
