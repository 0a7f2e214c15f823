"""The columns of a DataFrame that are written, and their types.

Spark's own connector takes the same columns by the same rules, with two exceptions: it ignores
`timestamp`, and in silence a column such as `Key`.
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
from spark_kafka_source.producer.given_columns import refuse_other_case
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


class MissingColumnError(LocalError):
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

        Raises `MissingColumnError` without values, `UnknownColumnError` for a column such as `Key`,
        which would be left out, `ColumnTypeError` for a type that cannot be written, and
        `ConfigurationError` if neither the option nor a column gives the topic. Looks up the
        schemas of encoded columns, and raises the errors of `plan_writes`.
        """
        names = schema.fieldNames()
        known = _TYPES.keys() - ({"topic"} if topic is not None else set())
        refuse_other_case(names, known)
        places = {name: names.index(name) for name in _TYPES if name in known and name in names}
        if topic is None and "topic" not in places:
            raise ConfigurationError(
                "topic",
                f"is missing, and no column 'topic' says it: there are {listed(names)}",
                "Give the option, or the column",
            )
        if "value" not in places:
            raise MissingColumnError(
                "There is no column 'value', which becomes the records' values: there are "
                f"{listed(names)}. Rename one"
            )
        encoded = {part.part for part in typed.parts}
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


def _check_type(name: str, kind: DataType) -> None:
    if not any(_is_same(kind, allowed) for allowed in _TYPES[name]):
        expected = " or ".join(allowed.simpleString() for allowed in _TYPES[name])
        raise ColumnTypeError(name, kind.simpleString(), expected)


def _is_same(kind: DataType, allowed: DataType) -> bool:
    """Whether the types are equal, whatever is nullable, and whatever the case of field names.

    A string may have any collation.
    """
    if isinstance(kind, ArrayType) and isinstance(allowed, ArrayType):
        return _is_same(kind.elementType, allowed.elementType)
    if isinstance(kind, StructType) and isinstance(allowed, StructType):
        names = [[name.lower() for name in struct.fieldNames()] for struct in (kind, allowed)]
        return names[0] == names[1] and all(
            _is_same(field.dataType, other.dataType)
            for field, other in zip(kind.fields, allowed.fields, strict=True)
        )
    return type(kind) is type(allowed)


def _with_known_fields(headers: pa.Array) -> pa.Array:
    """Return the headers with the field names `key` and `value`, in lower case."""
    header = headers.type.value_type
    if (header.field(0).name, header.field(1).name) == _HEADER_FIELDS:
        return headers
    structs = headers.values
    fields = [structs.field(0), structs.field(1)]
    named = pa.StructArray.from_arrays(fields, list(_HEADER_FIELDS), mask=structs.is_null())
    return pa.ListArray.from_arrays(headers.offsets, named, mask=headers.is_null())
