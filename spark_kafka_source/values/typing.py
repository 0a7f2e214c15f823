"""Options of Spark's own functions for the types and the meaning of columns, by their names there.

`from_avro`, `from_json` and `from_protobuf` have them as options; here they follow `value.` or
`key.`. docs/typed-values.md has the table.
"""

from dataclasses import dataclass

from spark_kafka_source.options.declaration import option
from spark_kafka_source.options.kinds import boolean, int32, string

MOST_AVRO_DEPTH = 15
MOST_PROTOBUF_DEPTH = 10


@dataclass(frozen=True, slots=True)
class AvroTyping:
    """Options of Spark's `from_avro` and `to_avro`."""

    recursive_field_max_depth: int = option(
        "recursiveFieldMaxDepth",
        int32(-1, minimum=-1, maximum=MOST_AVRO_DEPTH),
        "how often a record may be within itself before its columns end: with 1 the inner"
        " record has no column; by default such a type is refused",
    )
    enable_stable_identifiers_for_union_type: bool = option(
        "enableStableIdentifiersForUnionType",
        boolean(False),
        "whether a union's members are named by their types, such as `member_string`,"
        " in place of `member0`",
    )
    stable_identifier_prefix_for_union_type: str = option(
        "stableIdentifierPrefixForUnionType",
        string("member_"),
        "what stands before the type in such a name",
    )
    record_name: str = option(
        "recordName",
        string(),
        "the name of the record in a schema that is made from a column's type; by default"
        " `<topic>_value` or `<topic>_key`",
    )
    record_namespace: str = option("recordNamespace", string(), "the namespace of that record")


@dataclass(frozen=True, slots=True)
class JsonTyping:
    """Options of Spark's `from_json`, `to_json` and `schema_of_json`."""

    allow_non_numeric_numbers: bool = option(
        "allowNonNumericNumbers",
        boolean(True),
        "whether `NaN` and infinities, bare or as strings, are numbers to read",
    )
    allow_unquoted_control_chars: bool = option(
        "allowUnquotedControlChars",
        boolean(False),
        "whether strings to read may have control characters, such as line breaks, as they are",
    )
    ignore_null_fields: bool = option(
        "ignoreNullFields", boolean(True), "whether null fields are left out when a row is written"
    )
    primitives_as_string: bool = option(
        "primitivesAsString",
        boolean(False),
        "whether `infer_schema` makes numbers and booleans STRING",
    )
    prefers_decimal: bool = option(
        "prefersDecimal",
        boolean(False),
        "whether `infer_schema` makes numbers with a fraction DECIMAL where all digits fit",
    )
    drop_field_if_all_null: bool = option(
        "dropFieldIfAllNull",
        boolean(False),
        "whether `infer_schema` leaves out fields that are always null or empty arrays",
    )


@dataclass(frozen=True, slots=True)
class ProtobufTyping:
    """Options of Spark's `from_protobuf`."""

    emit_default_values: bool = option(
        "emit.default.values",
        boolean(False),
        "whether an unwritten proto3 field is 0 or empty, in place of null",
    )
    upcast_unsigned_ints: bool = option(
        "upcast.unsigned.ints",
        boolean(False),
        "whether uint32 is a bigint and uint64 a decimal(20,0), so that no value wraps around",
    )
    enums_as_ints: bool = option("enums.as.ints", boolean(False), "whether an enum is its number")
    unwrap_primitive_wrapper_types: bool = option(
        "unwrap.primitive.wrapper.types",
        boolean(False),
        "whether `google.protobuf.Int32Value` and its like are plain columns, in place of structs",
    )
    recursive_fields_max_depth: int = option(
        "recursive.fields.max.depth",
        int32(-1, minimum=-1, maximum=MOST_PROTOBUF_DEPTH),
        "how often a message may be nested in itself, counting the first: 1 leaves such"
        " fields out; 0 and -1 refuse them",
    )
    convert_any_fields_to_json: bool = option(
        "convert.any.fields.to.json",
        boolean(False),
        "whether `google.protobuf.Any` is the message in it, as a JSON text; the schema"
        " must have that message; needs the extra `protobuf`",
    )
