"""Columns as users give them: Arrow's tables, and what has Arrow's interface.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from typing import Protocol

import pyarrow as pa


class HasArrowStream(Protocol):
    """Columns with Arrow's stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of the stream."""


class HasArrowArray(Protocol):
    """Columns with Arrow's array interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return capsules of the schema and the array."""


def checked_columns(columns: object) -> pa.Table | pa.RecordBatch:
    """Return the columns as a table or a record batch.

    Takes objects with `__arrow_c_stream__` or `__arrow_c_array__`, as those of Polars, DuckDB and
    pandas. A stream is read to its end. Types of Arrow that records do not need are converted:
    views, dictionaries and large lists. Raises `TypeError` for anything else.
    """
    if isinstance(columns, pa.Table | pa.RecordBatch):
        found = columns
    elif hasattr(columns, "__arrow_c_stream__"):
        found = _imported(pa.table, columns)
    elif hasattr(columns, "__arrow_c_array__"):
        found = _imported(pa.record_batch, columns)
    else:
        raise _refused(columns)
    schema = pa.schema([each.with_type(_plain(each.type)) for each in found.schema])
    return found if schema.equals(found.schema) else found.cast(schema)


def _imported(read: object, columns: object) -> pa.Table | pa.RecordBatch:
    try:
        found: pa.Table | pa.RecordBatch = read(columns)  # type: ignore[operator]  # one of pyarrow's
    except (TypeError, ValueError, pa.ArrowException) as error:  # A column, and no columns.
        raise _refused(columns) from error
    return found


def _refused(columns: object) -> TypeError:
    return TypeError(
        "give a pyarrow Table or RecordBatch, or columns with `__arrow_c_stream__`, as those of"
        f" Polars, DuckDB and pandas have it, not a {type(columns).__name__}"
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type without views, dictionaries and large lists."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind):
        item = kind.value_field
        plain = item.with_type(_plain(item.type))
        return kind if types.is_list(kind) and plain.equals(item) else pa.list_(plain)
    if types.is_struct(kind):
        return pa.struct([each.with_type(_plain(each.type)) for each in kind])
    return kind
