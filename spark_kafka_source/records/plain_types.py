"""Arrow's types and arrays in their first form, in which the encoders take columns.

Arrow has several types for the same values: with large offsets, views, dictionaries, run ends or
fixed sizes. https://arrow.apache.org/docs/format/Columnar.html
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


def plain(kind: pa.DataType, *, keeps_large: bool = False) -> pa.DataType:
    """Return the type of the same values in Arrow's first form.

    Texts and lists with large offsets or views, dictionaries and fixed sizes become plain ones.
    With `keeps_large`, texts and bytes keep large offsets, and views get them: one array of them
    may have more than 2 GiB.
    """
    if pa.types.is_struct(kind):
        fields = [pa.field(each.name, plain(each.type, keeps_large=keeps_large)) for each in kind]
        return pa.struct(fields)
    if pa.types.is_map(kind):
        key, item = (
            plain(each, keeps_large=keeps_large) for each in (kind.key_type, kind.item_type)
        )
        return pa.map_(key, item)
    if is_any(kind, *_LISTS):
        return pa.list_(pa.field("element", plain(kind.value_type, keeps_large=keeps_large)))
    if is_any(kind, "dictionary", "run_end_encoded"):
        return plain(kind.value_type, keeps_large=keeps_large)
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type, keeps_large=keeps_large)
    return _plain_leaf(kind, keeps_large=keeps_large)


def _plain_leaf(kind: pa.DataType, *, keeps_large: bool) -> pa.DataType:
    if is_any(kind, "large_string", "string_view"):
        return pa.large_string() if keeps_large else pa.string()
    if is_any(kind, "large_binary", "binary_view"):
        return pa.large_binary() if keeps_large else pa.binary()
    if is_any(kind, "fixed_size_binary"):
        return pa.binary()
    is_small = is_any(kind, "decimal") and kind.bit_width < 128
    return pa.decimal128(kind.precision, kind.scale) if is_small else kind


def is_any(kind: pa.DataType, *names: str) -> bool:
    """Whether a type is one of these, named as in `pyarrow.types` behind `is_`."""
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def as_plain(array: pa.Array, target: pa.DataType | None = None) -> pa.Array:
    """Return the column in its plain type, which is `target` if that is known already.

    Arrow's own cast is for leaves only. It makes invalid arrays of views of lists, and of sliced
    lists with a field of the null type.
    """
    kind = array.type
    target = plain(kind) if target is None else target
    if kind == target:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return as_plain(array.storage, target)
    if is_any(kind, "dictionary"):
        return as_plain(array.dictionary_decode(), target)
    if is_any(kind, "run_end_encoded"):
        return as_plain(pc.run_end_decode(array), target)
    is_nested = is_any(kind, "struct", "map", *_LISTS)
    return _nested_as_plain(array, target) if is_nested else array.cast(target)


def _nested_as_plain(array: pa.Array, target: pa.DataType) -> pa.Array:
    null = array.is_null().to_numpy(zero_copy_only=False)
    if is_any(target, "struct"):
        fields = [as_plain(array.field(place), each.type) for place, each in enumerate(target)]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=pa.array(null))
    if is_any(target, "map"):
        counts, entries = np.diff(array.offsets.to_numpy()), _entries(array).flatten()
        keys = as_plain(entries.field(0), target.key_type)
        items = as_plain(entries.field(1), target.item_type)
        return pa.MapArray.from_arrays(_offsets(counts, null), keys, items, target)
    counts = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    items = as_plain(array.flatten(), target.value_type)
    return pa.ListArray.from_arrays(_offsets(counts, null), items, target)


def _entries(array: pa.MapArray) -> pa.ListArray:
    """Return a column of maps as lists of structs."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    buffers = array.buffers()[:2]
    kind = pa.list_(entries.type)
    return pa.Array.from_buffers(kind, len(array), buffers, -1, array.offset, [entries])


def _offsets(counts: npt.NDArray[np.integer], null: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the bounds of lists. A null has no items, and is null there, too."""
    ends = np.append(0, np.cumsum(np.where(null, 0, counts)))
    return pa.array(ends, pa.int32(), mask=np.append(null, False))
