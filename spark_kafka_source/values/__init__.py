"""Values as columns, without IO: schemas become programs, which turn bytes into Arrow and back."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.values.decoding import Decoded
    from spark_kafka_source.values.errors import RecursiveTypeError, SchemaError, UnresolvableError
    from spark_kafka_source.values.faults import Fault
    from spark_kafka_source.values.rows import Encoded
    from spark_kafka_source.values.schema_text import SchemaRule, SchemaText, SchemaType
    from spark_kafka_source.values.text import TextReader
    from spark_kafka_source.values.value_reader import ValueReader, decode_column
    from spark_kafka_source.values.value_writer import ValueWriter, encode_values

__all__ = [
    "Decoded",
    "Encoded",
    "Fault",
    "RecursiveTypeError",
    "SchemaError",
    "SchemaRule",
    "SchemaText",
    "SchemaType",
    "TextReader",
    "UnresolvableError",
    "ValueReader",
    "ValueWriter",
    "decode_column",
    "encode_values",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "decoding": "Decoded",
            "errors": "RecursiveTypeError SchemaError UnresolvableError",
            "faults": "Fault",
            "rows": "Encoded",
            "schema_text": "SchemaRule SchemaText SchemaType",
            "text": "TextReader",
            "value_reader": "ValueReader decode_column",
            "value_writer": "ValueWriter encode_values",
        },
    )
