"""Interface of all formats for reading: values in the bytes of a chunk become a column."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.outcome import Mask
from spark_kafka_source.values.schema_text import SchemaText


class ValueReader(Protocol):
    """Decoder from values of one format to one column, for any schemas that wrote the values.

    A reader can be pickled, and stays the same while a query lives. A program says how to read the
    values of one writer's schema. Each format has its own type of program, and only its reader
    looks into it.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column. Everything in it is nullable."""

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> Any:
        """Return the program that reads the values written with `writer`.

        `message` is Protobuf's message indexes: the number of a message in the schema, then the
        number of a message nested in it, and so on. Raises `SchemaError` for an unusable schema,
        and `UnresolvableError` if no value of that schema can be read.
        """

    def decode(
        self,
        programs: Sequence[Any],
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        program_of: Integers | None = None,
    ) -> Decoded:
        """Decode `data[starts[row]:ends[row]]`, each row with the program it has in `program_of`.

        A row without a program has -1, and is bad. Never raises because of the bytes.
        """
