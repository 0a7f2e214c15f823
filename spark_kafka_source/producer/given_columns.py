"""Columns as users give them: Arrow's tables, and what has Arrow's interface.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from spark_kafka_source.errors import LocalError
from spark_kafka_source.records.plain_types import as_plain, plain


class HasArrowStream(Protocol):
    """Columns with Arrow's stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of the stream."""


class HasArrowArray(Protocol):
    """Columns with Arrow's array interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return capsules of the schema and the array."""


_COLUMNS = ("key", "value", "headers", "timestamp", "partition", "topic")


class UnknownColumnError(LocalError):
    """A column, `column`, that would be left out although its data is probably meant."""

    def __init__(self, column: str, advice: str) -> None:
        super().__init__(column, advice)
        self.column, self.advice = column, advice

    def _text(self) -> str:
        return f"Column {self.column!r} is no part of a record. {self.advice}"


def checked_columns(columns: object) -> pa.Table | pa.RecordBatch:
    """Return the columns as a table or a record batch.

    Takes objects with `__arrow_c_stream__` or `__arrow_c_array__`, as those of Polars, DuckDB and
    pandas. A stream is read to its end. Types of Arrow that records do not need are converted, as
    views, dictionaries and large lists. Raises `TypeError` for anything else.

    Raises `UnknownColumnError` for a name that is a record's column but for its case. Without a
    column `value` it raises it for any other column: each record would be a tombstone, which
    deletes its key.
    """
    if isinstance(columns, pa.Table | pa.RecordBatch):
        arrow = columns
    elif hasattr(columns, "__arrow_c_stream__"):
        arrow = _imported(pa.table, columns)
    elif hasattr(columns, "__arrow_c_array__"):
        arrow = _imported(pa.record_batch, columns)
    else:
        raise _refused(columns)
    names = arrow.schema.names
    refuse_other_case(names, _COLUMNS)
    others = [field for field in arrow.schema if field.name not in _COLUMNS]
    lost = [field.name for field in others if not pa.types.is_null(field.type)]
    if lost and "value" not in names:
        raise UnknownColumnError(lost[0], "Without a column 'value' no record has a value")
    return _plain(arrow)


def refuse_other_case(names: Collection[str], wanted: Collection[str]) -> None:
    """Raise `UnknownColumnError` for a name that is a wanted one but for its case.

    It does no harm where the wanted column is there, too.
    """
    for name in names:
        if name.lower() in wanted and name.lower() not in names:
            raise UnknownColumnError(name, f"Names count with their case: {name.lower()!r}")


def _imported(read: object, columns: object) -> pa.Table | pa.RecordBatch:
    try:
        arrow: pa.Table | pa.RecordBatch = read(columns)  # type: ignore[operator]  # one of pyarrow's
    except (TypeError, ValueError, pa.ArrowException) as error:  # A column, and no columns.
        raise _refused(columns) from error
    return arrow


def _refused(columns: object) -> TypeError:
    return TypeError(
        "give a pyarrow Table or RecordBatch, or columns with `__arrow_c_stream__`, as those of"
        f" Polars, DuckDB and pandas have it, not an object of type {type(columns).__name__}"
    )


def _plain(columns: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """Return the columns. The columns of records have their plain types."""
    for place, field in enumerate(columns.schema):
        type = plain(field.type, keeps_large=True)
        if field.name in _COLUMNS and type != field.type:
            column = columns.column(place)
            if isinstance(column, pa.ChunkedArray):
                column = pa.chunked_array([as_plain(chunk, type) for chunk in column.chunks], type)
            else:
                column = as_plain(column, type)
            columns = columns.set_column(place, field.with_type(type), column)
    return columns
