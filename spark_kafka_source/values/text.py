"""Text as a format of values: UTF-8, checked."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from spark_kafka_source.values.arrow import ArrowBuilder
from spark_kafka_source.values.columns import Column, Form, Layout
from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.faults import WHOLE, Fault, Outcome
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.rows import Encoded
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.slots import Slots

_LAYOUT = Layout(Column("", Form.STRING, pa.string(), 0, 0), (0, 0), (-1,))


class TextReader:
    """`ValueReader` of text, which needs no schema."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column."""
        return _LAYOUT.column.arrow

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> None:
        """Return None: text is read without a program."""

    def decode(self, programs: Sequence[None], encoded: Encoded) -> Decoded:
        """Decode the slices as texts. A slice that is not UTF-8 is bad."""
        count, null, program_of = len(encoded.starts), encoded.nulls, encoded.program_of
        outcome, slots = Outcome(count), Slots(_LAYOUT, count)
        for slot, bounds in enumerate(encoded.bounds):
            slots.fill(slot, np.where(null, 0, bounds))
        if program_of is not None:
            outcome.add(np.flatnonzero((program_of < 0) & ~null), Fault.NO_PROGRAM, WHOLE)
        builder = ArrowBuilder(OctetReader(encoded.data), slots, outcome)
        return Decoded(builder.rows(_LAYOUT.column, null), outcome.status, {})
