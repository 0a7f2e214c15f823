"""Encoder from columns to JSON texts, as Spark's `to_json` writes them, a column at a time.

A `Fit` says how. Null fields are left out, unless the schema requires them. In arrays and maps null
is written. NaN and infinite doubles are strings, and years beyond four digits have a sign, both as
Spark writes them. Times have six digits after the point. Spark writes only three, and drops the
rest.
"""

import binascii
import json
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.plain_types import as_plain, plain
from spark_kafka_source.records.varints import Integers
from spark_kafka_source.values.ddl import TIMESTAMP, TIMESTAMP_NTZ
from spark_kafka_source.values.errors import quoted
from spark_kafka_source.values.fitting import converted, refuse_rows
from spark_kafka_source.values.iso_8601 import is_far, iso_8601
from spark_kafka_source.values.json.fit import BASE64, Field, Fit, free, matches
from spark_kafka_source.values.json.meaning import from_base64
from spark_kafka_source.values.json.times import is_full_date, is_moment

Mask = npt.NDArray[np.bool_]

_ESCAPED = r'["\\\x00-\x1f]'
_INTEGRAL = r"^-?[0-9]+$"


def encode(array: pa.Array, fit: Fit | None = None) -> pa.BinaryArray:
    """Return a text for each row, or null for a null row.

    `fit` is made for the plain type of the array; by default there is no schema. Raises
    `UnfitColumnError` for types that JSON has no place for, and `UnencodableRowError`.
    """
    array = as_plain(array)
    plan = free(plain(array.type)) if fit is None else fit
    return _text(array, plan, np.arange(len(array))).cast(pa.binary())


def _text(array: pa.Array, fit: Fit, rows: Integers) -> pa.Array:
    """Return the texts of a column, null where the column is. `rows` has the row of each value."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.string())
    if not array.null_count:
        return _of(array, fit, rows)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    texts = _of(array.filter(pa.array(there)), fit, rows[there])
    return texts.take(pa.array(np.cumsum(there) - 1, mask=~there))


def _of(array: pa.Array, fit: Fit, rows: Integers) -> pa.Array:
    """Return the texts of a column without nulls."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _object(array, fit, rows)
    if pa.types.is_map(kind):
        return _map(array, fit, rows)
    if pa.types.is_list(kind):
        return _list(array, fit, rows)
    array = converted(array, fit.kind, rows, fit.path)
    if fit.kind in _CHECKS:
        _CHECKS[fit.kind](array, fit, rows)
    return _LEAVES.get(fit.kind, _plain)(array)


def _object(array: pa.Array, fit: Fit, rows: Integers) -> pa.Array:
    fields: list[pa.Array | pa.Scalar] = [pa.array([""] * len(array), pa.string())]
    for field in fit.fields:
        name = f",{json.dumps(field.name, ensure_ascii=False)}:"
        if field.place is None and field.is_required:
            fields.append(pa.scalar(f"{name}null"))
        elif field.place is not None:
            fields.append(_joined(pa.scalar(name), _field(array.field(field.place), field, rows)))
    inner = pc.binary_join_element_wise(*fields, pa.scalar(""), null_handling="skip")
    return _around("{", pc.utf8_slice_codeunits(inner, 1), "}")


def _field(array: pa.Array, field: Field, rows: Integers) -> pa.Array:
    """Return the texts of a field, null where the object does not have it."""
    texts = _text(array, field.fit, rows)
    return _with_nulls(texts, field.fit, rows) if field.is_required else texts


def _with_nulls(texts: pa.Array, fit: Fit, rows: Integers) -> pa.Array:
    """Return the texts with nulls as they are written. Raises `UnencodableRowError` for others."""
    if not texts.null_count:
        return texts
    if not fit.null:
        _refuse(texts.is_null(), rows, fit, "null, where the schema has none")
    return pc.fill_null(texts, "null")


def _map(array: pa.Array, fit: Fit, rows: Integers) -> pa.Array:
    start, size = _span(array)
    owners, counts = _owners(array, rows)
    keys, items = (each.slice(start, size) for each in (array.keys, array.items))
    _check_keys(keys, fit, owners, np.repeat(np.arange(len(array)), counts))
    pairs = _joined(_string(keys), ":", _items(items, fit, owners))
    return _around("{", _listed(counts, pairs), "}")


def _list(array: pa.Array, fit: Fit, rows: Integers) -> pa.Array:
    start, size = _span(array)
    owners, counts = _owners(array, rows)
    if fit.most is not None:
        shown = f"more than the {fit.most} items that the schema has"
        _refuse(pa.array(counts > fit.most), rows, fit, shown)
    items = _items(array.values.slice(start, size), fit, owners)
    return _around("[", _listed(counts, items), "]")


def _items(items: pa.Array, fit: Fit, owners: Integers) -> pa.Array:
    item = fit.item or free(items.type, fit.path)
    return _with_nulls(_text(items, item, owners), item, owners)


def _span(array: pa.Array) -> tuple[int, int]:
    """Return the first item of all lists or maps, and the number of items."""
    if not len(array):
        return 0, 0
    first, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return first, end - first


def _owners(array: pa.Array, rows: Integers) -> tuple[Integers, Integers]:
    """Return the row of each item, and the number of items of each list or map."""
    counts = np.diff(array.offsets.to_numpy()).astype(np.int64)
    return np.repeat(rows, counts), counts


def _listed(counts: Integers, items: pa.Array) -> pa.Array:
    """Return the texts of each list's items, with commas between them."""
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(offsets, items), ",")


def _joined(*parts: pa.Array | pa.Scalar | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(""))


def _around(before: str, texts: pa.Array, behind: str) -> pa.Array:
    return _joined(pa.scalar(before), texts, pa.scalar(behind))


# -- what only rows show ---------------------------------------------------------------------------


def _refuse(wrong: pa.Array | Mask, rows: Integers, fit: Fit, reason: str) -> None:
    """Raise `UnencodableRowError` for the rows of these values, if there are any."""
    bad_rows = rows[np.asarray(wrong, np.bool_)]
    if len(bad_rows):
        refuse_rows(fit.path, bad_rows, reason)


def _check_keys(keys: pa.Array, fit: Fit, rows: Integers, owners: Integers) -> None:
    """Refuse nulls, keys that come twice in a map, and those that the schema does not have."""
    _refuse(keys.is_null(), rows, fit, "a key that is null")
    codes = keys.dictionary_encode()
    numbers = owners * (len(codes.dictionary) + 1) + codes.indices.to_numpy()
    _, first = np.unique(numbers, return_index=True)
    if len(first) < len(keys):
        again = np.ones(len(keys), np.bool_)
        again[first] = False
        shown = quoted(keys[int(again.argmax())].as_py())
        _refuse(again, rows, fit, f"the key {shown} comes twice")
    if fit.names is not None:
        known = codes.dictionary.to_pylist()
        sound = np.array([any(matches(name, each) for name in fit.names) for each in known], bool)
        wrong = ~sound[codes.indices.to_numpy()] if known else np.zeros(0, bool)
        if wrong.any():
            shown = quoted(keys[int(wrong.argmax())].as_py())
            _refuse(wrong, rows, fit, f"the key {shown}, which the schema does not have")


def _check_finite(array: pa.Array, fit: Fit, rows: Integers) -> None:
    if fit.is_number:
        wrong = ~np.isfinite(array.to_numpy())
        _refuse(wrong, rows, fit, "NaN or infinity, which is no number in JSON")


def _check_year(array: pa.Array, fit: Fit, rows: Integers) -> None:
    if fit.formats:
        _refuse(is_far(array), rows, fit, f"a year that a {_shown(fit.formats)} does not have")


def _check_string(array: pa.Array, fit: Fit, rows: Integers) -> None:
    if not fit.formats:
        return
    texts = array.to_pylist()
    wrong = np.array([not has_format(text, fit.formats) for text in texts], np.bool_)
    if wrong.any():
        shown = quoted(texts[int(wrong.argmax())])
        _refuse(wrong, rows, fit, f"{shown} is no {_shown(fit.formats)}")


def has_format(text: str, formats: Iterable[str]) -> bool:
    """Whether a string has one of these formats: `date`, `date-time` (RFC 3339) or `base64`."""
    return any(_HAS_FORMAT[format_name](text) for format_name in formats)


def _is_base64(text: str) -> bool:
    try:
        return from_base64(text) is not None
    except ValueError:
        return False


def _shown(formats: Iterable[str]) -> str:
    return " or ".join(sorted(formats))


_HAS_FORMAT: dict[str, Callable[[str], bool]] = {
    "date": is_full_date,
    "date-time": is_moment,
    BASE64: _is_base64,
}
_CHECKS: dict[pa.DataType, Callable[[pa.Array, Fit, Integers], None]] = {
    pa.float32(): _check_finite,
    pa.float64(): _check_finite,
    pa.string(): _check_string,
    pa.date32(): _check_year,
    TIMESTAMP: _check_year,
    TIMESTAMP_NTZ: _check_year,
}


def text_of_leaf(value: object, kind: pa.DataType) -> str:
    """Return the text that a value of a type that is not nested has as a column of one row."""
    shown: str = _LEAVES.get(kind, _plain)(pa.array([value], kind))[0].as_py()
    return shown


# -- leaves ----------------------------------------------------------------------------------------


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _float(array: pa.Array) -> pa.Array:
    texts = _plain(array)
    integral = pc.match_substring_regex(texts, _INTEGRAL)
    if pc.any(integral).as_py():
        texts = pc.if_else(integral, _joined(texts, ".0"), texts)
    finite = pc.is_finite(array)
    if pc.all(finite).as_py() is not False:
        return texts
    named = pc.if_else(pc.is_nan(array), "NaN", pc.if_else(pc.greater(array, 0), *_INFINITE))
    return pc.if_else(finite, texts, _around('"', named, '"'))


_INFINITE = "Infinity", "-Infinity"


def _string(array: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(array, _ESCAPED)
    if not pc.any(special).as_py():
        return _around('"', array, '"')
    texts = [json.dumps(each, ensure_ascii=False) for each in array.filter(special).to_pylist()]
    plain = _around('"', array, '"')
    return pc.replace_with_mask(plain, pc.fill_null(special, False), pa.array(texts, pa.string()))


def _base64(array: pa.Array) -> pa.Array:
    texts = (
        None if each is None else binascii.b2a_base64(each, newline=False).decode()
        for each in array.to_pylist()
    )
    return _around('"', pa.array(texts, pa.string()), '"')


def _time(array: pa.Array) -> pa.Array:
    return _around('"', iso_8601(array), '"')


_LEAVES: dict[pa.DataType, Callable[[pa.Array], pa.Array]] = {
    pa.float32(): _float,
    pa.float64(): _float,
    pa.string(): _string,
    pa.binary(): _base64,
    pa.date32(): _time,
    TIMESTAMP: _time,
    TIMESTAMP_NTZ: _time,
}
