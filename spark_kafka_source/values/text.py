"""Text as a format of values: UTF-8, checked."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.arrow import ArrowBuilder
from spark_kafka_source.values.columns import Column, Form, Layout
from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.faults import Fault
from spark_kafka_source.values.octets import OctetReader
from spark_kafka_source.values.outcome import WHOLE, Mask, Outcome
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

    def decode(
        self,
        programs: Sequence[None],
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        program_of: Integers | None = None,
    ) -> Decoded:
        """Decode the slices as texts. A slice that is not UTF-8 is bad."""
        count = len(starts)
        null = np.zeros(count, np.bool_) if null is None else null
        outcome, slots = Outcome(count), Slots(_LAYOUT, count)
        for slot, bounds in enumerate((starts, ends)):
            slots.fill(slot, np.where(null, 0, bounds).astype(np.int64, copy=False))
        if program_of is not None:
            outcome.add(np.flatnonzero((program_of < 0) & ~null), Fault.NO_PROGRAM, WHOLE)
        builder = ArrowBuilder(OctetReader(data), slots, outcome)
        return Decoded(builder.rows(_LAYOUT.column, null), outcome.status, {})
