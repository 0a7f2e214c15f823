"""Which columns of a DataFrame are written, and as what.

Spark's own connector takes the same ones by the same rules, but for `timestamp`, which it passes
over.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.records import ColumnTypeError
from spark_kafka_source.spark.conditions import listed
from spark_kafka_source.typed import TypedWrite, TypedWriteConfig, plan_writes

_TEXT = StringType()
_BYTES = BinaryType()
_HEADER = StructType([StructField("key", _TEXT), StructField("value", _BYTES)])
_TYPES: Mapping[str, tuple[DataType, ...]] = {
    "topic": (_TEXT,),
    "key": (_TEXT, _BYTES),
    "value": (_TEXT, _BYTES),
    "headers": (ArrayType(_HEADER),),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
_HEADER_FIELDS = ("key", "value")
_BYTES_ALONE = TypedWriteConfig()


class SchemaError(LocalError):
    """A DataFrame lacks a column without which it cannot be written."""


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """Where in a DataFrame the columns are that are written, by their names.

    The first of a name counts, and names count as they are written; all others are passed over.
    """

    places: Mapping[str, int]
    typed: Mapping[str, TypedWrite] = field(default_factory=dict)
    """How keys and values are encoded that are of other types than text and bytes."""

    @classmethod
    def of(
        cls, schema: StructType, topic: str | None, typed: TypedWriteConfig = _BYTES_ALONE
    ) -> "SinkColumns":
        """Those of a schema; `topic` is that of the option, which goes before a column.

        Raises `SchemaError` or `ColumnTypeError` for what cannot be written, and
        `ConfigurationError` where nothing says to which topic. Schemas of what is encoded are
        looked up: raises what `plan_writes` does.
        """
        names = schema.fieldNames()
        wanted = _TYPES.keys() - ({"topic"} if topic is not None else set())
        places = {name: names.index(name) for name in _TYPES if name in wanted and name in names}
        if topic is None and "topic" not in places:
            raise ConfigurationError(
                "topic",
                f"is missing, and no column 'topic' says it: there are {listed(names)}",
                "Give the option, or the column",
            )
        if "value" not in places:
            raise SchemaError(
                "There is no column 'value', which becomes the records' values: there are "
                f"{listed(names)}. Rename one; names count as they are written"
            )
        encoded = {each.part for each in typed.parts}
        for name, place in places.items():
            if name not in encoded:
                _check_type(name, schema.fields[place].dataType)
        kinds = {
            name: _arrow_type(schema.fields[places[name]].dataType)
            for name in encoded & places.keys()
        }
        return cls(places, plan_writes(typed, kinds, topic) if kinds else {})

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those of a batch of the DataFrame, under names in lower case."""
        columns = {name: batch.column(place) for name, place in self.places.items()}
        for name, typed in self.typed.items():
            columns[name] = typed.encode(columns[name])
        if "headers" in columns:
            columns["headers"] = _with_known_fields(columns["headers"])
        return pa.RecordBatch.from_pydict(columns)


def _arrow_type(kind: DataType) -> pa.DataType:
    """What Spark hands over; versions of it differ in how they are told that times are in UTC."""
    to_arrow: Callable[..., pa.DataType] = to_arrow_type
    known = inspect.signature(to_arrow_type).parameters
    return to_arrow(kind, timezone="UTC") if "timezone" in known else to_arrow(kind)


def _check_type(name: str, found: DataType) -> None:
    if not any(_is_same(found, wanted) for wanted in _TYPES[name]):
        expected = " or ".join(each.simpleString() for each in _TYPES[name])
        raise ColumnTypeError(name, found.simpleString(), expected)


def _is_same(found: DataType, wanted: DataType) -> bool:
    """Whether it is that type, whatever may be null in it, and however its fields' names are cased.

    A string may have any collation.
    """
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return _is_same(found.elementType, wanted.elementType)
    if isinstance(found, StructType) and isinstance(wanted, StructType):
        names = [[each.lower() for each in one.fieldNames()] for one in (found, wanted)]
        return names[0] == names[1] and all(
            _is_same(one.dataType, other.dataType)
            for one, other in zip(found.fields, wanted.fields, strict=True)
        )
    return type(found) is type(wanted)


def _with_known_fields(headers: pa.Array) -> pa.Array:
    """The same with the fields `key` and `value`, where they are `Key` and `VALUE`, say."""
    header = headers.type.value_type
    if (header.field(0).name, header.field(1).name) == _HEADER_FIELDS:
        return headers
    structs = headers.values
    fields = [structs.field(0), structs.field(1)]
    named = pa.StructArray.from_arrays(fields, list(_HEADER_FIELDS), mask=structs.is_null())
    return pa.ListArray.from_arrays(headers.offsets, named, mask=headers.is_null())
