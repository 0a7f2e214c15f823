"""JSON as a format of values to read."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.arrow import gather
from spark_kafka_source.values.decoding import Decoded
from spark_kafka_source.values.faults import Fault, Mask
from spark_kafka_source.values.json import compiled, fast
from spark_kafka_source.values.json.meaning import DEFAULT, BadValueError, Meaning, readable
from spark_kafka_source.values.json.tokens import TokenReader
from spark_kafka_source.values.json.validation import Validation
from spark_kafka_source.values.kept import made_once
from spark_kafka_source.values.rows import Encoded
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.selection import projected
from spark_kafka_source.values.typing import JsonTyping


class JsonReader:
    """`ValueReader` of some or all fields of a type. It is pickled as the type.

    A row is sound or bad as a whole. If one field does not fit, the row is bad, with the path of
    that field. Fields that are not read must be JSON, and are not checked further.
    """

    def __init__(
        self,
        arrow_type: pa.DataType,
        fields: Iterable[str] | None = None,
        validation: Validation | None = None,
        typing: JsonTyping = DEFAULT,
    ) -> None:
        """`fields` are paths such as `address.city`. Raises `SchemaError`.

        A row that is not valid by `validation` is bad. It looks at all fields. Where `typing` says
        what a text means, rows are read one by one.
        """
        self._validation = validation
        self._is_usual = (
            typing.allow_non_numeric_numbers and not typing.allow_unquoted_control_chars
        )
        self._typing = typing
        self.arrow_type = projected(readable(arrow_type), fields)
        self._meaning = Meaning(self.arrow_type, typing)
        self._fast = fast.FastReader(self.arrow_type)
        self._tokens = TokenReader(self.arrow_type)

    def __reduce__(self) -> tuple[Any, ...]:
        return made_once, (JsonReader, self.arrow_type, None, self._validation, self._typing)

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> None:
        """Return None: a JSON text describes itself."""

    def decode(self, programs: Sequence[None], encoded: Encoded) -> Decoded:
        """Decode the rows, many at once. Rows that this cannot read are read one by one.

        Rows without a program are bad, as in other formats.
        """
        octets: Octets = np.frombuffer(encoded.data, np.uint8)
        starts, ends = encoded.bounds
        rows = _Rows(self._meaning, octets, starts, ends)
        null, program_of, left = encoded.null, encoded.program_of, ~encoded.nulls
        if program_of is not None:
            rows.status[left & (program_of < 0)] = Fault.NO_PROGRAM
            left &= program_of >= 0
        parts, others = [], np.flatnonzero(left)
        # The others know the usual meaning only.
        few = fast.FEW if self._is_usual else len(others) + 1
        if len(others) >= few and (kernels := compiled.kernels(len(others))):
            tokens = self._tokens.read(kernels, octets, starts[others], ends[others])
            if tokens:
                parts.append((tokens.array, others))
                others = others[np.unique(tokens.doubtful)]
                # A few such rows are bad ones. Many are a kind that the kernels do not read.
                few = max(fast.FEW, len(tokens.rows) // 4)
        if len(others) >= few and self._fast.can_read:
            array, of, others = _together(self._fast, octets, starts, ends, others)
            parts.append((array, of))
        whole = rows.decoded(self.arrow_type, parts, others)
        return whole if self._validation is None else rows.validated(whole, self._validation, null)


class _Rows:
    """Results of each row."""

    def __init__(self, meaning: Meaning, octets: Octets, starts: Integers, ends: Integers) -> None:
        self._meaning, self._octets, self._starts, self._ends = meaning, octets, starts, ends
        self.status: Octets = np.zeros(len(starts), np.uint8)
        self._paths: dict[int, str] = {}
        self._details: dict[int, str] = {}

    def decoded(
        self, kind: pa.DataType, parts: list[tuple[pa.Array, Integers]], others: Integers
    ) -> Decoded:
        """Join the results. Each of `parts` is an array and its rows. `others` are read alone.

        If a row is in several parts, the last one counts.
        """
        count = len(self.status)
        if len(parts) == 1 and len(parts[0][1]) == count and not len(others):
            return Decoded(parts[0][0], self.status, self._paths)
        values = pa.array([self._value(row) for row in others.tolist()], kind)
        parts = [*parts, (values, others)]
        place, null, size = np.zeros(count, np.int64), np.ones(count, np.bool_), 0
        for array, of in parts:
            place[of], null[of] = size + np.arange(len(of)), False
            size += len(array)
        whole = pa.concat_arrays([array for array, _ in parts])
        rows = whole.take(pa.array(place, mask=null))
        return Decoded(rows, self.status, self._paths, self._details)

    def validated(self, decoded: Decoded, validation: Validation, null: Mask | None) -> Decoded:
        """Return the results, in which rows that are not valid are bad."""
        sound = self.status == Fault.OK if null is None else (self.status == Fault.OK) & ~null
        for row in np.flatnonzero(sound).tolist():
            invalid = validation.invalid(self._text(row))
            if invalid is not None:
                self.status[row], self._details[row] = Fault.INVALID, invalid.reason
                self._paths[row] = invalid.path
        not_valid = self.status == Fault.INVALID
        if not not_valid.any():
            return decoded
        places = pa.array(np.arange(len(not_valid)), mask=not_valid)
        return Decoded(decoded.array.take(places), self.status, self._paths, self._details)

    def _text(self, row: int) -> bytes:
        return self._octets[self._starts[row] : self._ends[row]].tobytes()

    def _value(self, row: int) -> Any:
        try:
            return self._meaning.value(self._text(row))
        except BadValueError as error:
            self.status[row] = error.fault
            self._paths[row] = error.path
            if error.detail:
                self._details[row] = error.detail
        return None


def _together(
    reader: fast.FastReader, octets: Octets, starts: Integers, ends: Integers, rows: Integers
) -> tuple[pa.Array, Integers, Integers]:
    """Return an array, the rows in it, and the rows that must be read one by one."""
    starts, ends = fast.trimmed(octets, starts[rows], ends[rows])
    doubtful = fast.is_doubtful(octets, starts, ends)
    if doubtful.any():
        sound = np.flatnonzero(~doubtful)
        starts, ends = starts[sound], ends[sound]
    else:
        sound = np.arange(len(rows))
    texts = gather(octets, starts, ends, None)
    broken = fast.not_text(texts)
    if broken.any():
        texts = texts.filter(pa.array(~broken))
        sound = sound[~broken]
    read_rows = reader.read(texts)
    read = np.ones(len(rows), np.bool_)
    read[sound[read_rows.rows]] = False
    read[sound[read_rows.doubtful]] = True
    return read_rows.array, rows[sound[read_rows.rows]], rows[read]
