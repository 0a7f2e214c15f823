"""What all formats have in common: values in the bytes of a chunk, to a column."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.outcome import Mask
from spark_kafka_source.values.schema_text import SchemaText


class ValueReader(Protocol):
    """Decodes the values of one format into one column, whichever schemas they were written with.

    It can be pickled, and is the same for the whole life of a query. A program is how it reads what
    one schema wrote: of a type of its own, which only it looks into.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """Of the column. All that is in it is nullable."""

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> Any:
        """Return how to read what `writer` wrote.

        `message` are the message indexes of Protobuf: which message of the schema, by its number,
        then which of those within it, and so on. Raises `SchemaError` for a schema that cannot be
        used, and `UnresolvableError` where nothing that it wrote can be read.
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
        """Decode `data[starts[row]:ends[row]]`, each row by the program whose number it has.

        A row without a program has -1, and is bad. Never raises because of what the bytes are.
        """
