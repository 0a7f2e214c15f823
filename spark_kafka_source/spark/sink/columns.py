"""The columns of a DataFrame that are written, and their types.

Spark's own connector takes the same columns by the same rules, except `timestamp`, which it
ignores.
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

from spark_kafka_source.errors import ConfigurationError, LocalError, listed
from spark_kafka_source.records import ColumnTypeError
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
    """A DataFrame lacks a column that a write needs."""


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """The places of the written columns in a DataFrame, by their names.

    The first column of a name counts. Names are case-sensitive. Other columns are ignored.
    """

    places: Mapping[str, int]
    typed: Mapping[str, TypedWrite] = field(default_factory=dict)
    """How typed keys and values are encoded into bytes."""

    @classmethod
    def of(
        cls, schema: StructType, topic: str | None, typed: TypedWriteConfig = _BYTES_ALONE
    ) -> "SinkColumns":
        """Return the columns of a schema. `topic` is the option, which goes before the column.

        Raises `SchemaError` or `ColumnTypeError` for columns that cannot be written, and
        `ConfigurationError` if neither the option nor a column gives the topic. Looks up the
        schemas of encoded columns, and raises the errors of `plan_writes`.
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
            name: arrow_type(schema.fields[places[name]].dataType)
            for name in encoded & places.keys()
        }
        return cls(places, plan_writes(typed, kinds, topic) if kinds else {})

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the written columns of a batch, under names in lower case."""
        columns = {name: batch.column(place) for name, place in self.places.items()}
        for name, typed in self.typed.items():
            columns[name] = typed.encode(columns[name])
        if "headers" in columns:
            columns["headers"] = _with_known_fields(columns["headers"])
        return pa.RecordBatch.from_pydict(columns)


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark hands a column to a sink.

    Versions of Spark differ in the argument that sets UTC as the time zone.
    """
    to_arrow: Callable[..., pa.DataType] = to_arrow_type
    known = inspect.signature(to_arrow_type).parameters
    return to_arrow(kind, timezone="UTC") if "timezone" in known else to_arrow(kind)


def _check_type(name: str, found: DataType) -> None:
    if not any(_is_same(found, wanted) for wanted in _TYPES[name]):
        expected = " or ".join(each.simpleString() for each in _TYPES[name])
        raise ColumnTypeError(name, found.simpleString(), expected)


def _is_same(found: DataType, wanted: DataType) -> bool:
    """Whether the types are equal, whatever is nullable, and whatever the case of field names.

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
    """Return the headers with the field names `key` and `value`, in lower case."""
    header = headers.type.value_type
    if (header.field(0).name, header.field(1).name) == _HEADER_FIELDS:
        return headers
    structs = headers.values
    fields = [structs.field(0), structs.field(1)]
    named = pa.StructArray.from_arrays(fields, list(_HEADER_FIELDS), mask=structs.is_null())
    return pa.ListArray.from_arrays(headers.offsets, named, mask=headers.is_null())
