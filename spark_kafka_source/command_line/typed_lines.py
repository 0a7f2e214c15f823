"""Lines with JSON keys or values, encoded with the schema of their topic."""

import pyarrow as pa

from spark_kafka_source.command_line.line_columns import Parse, Parsed
from spark_kafka_source.command_line.lines import LineError, Piece
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.typed import TypedEncoding, TypedWrite
from spark_kafka_source.values import SchemaText, SchemaType, decode_column
from spark_kafka_source.values.json import JsonReader

_JSON = SchemaText(SchemaType.JSON, "")


def typed(parse: Parse, encoding: TypedEncoding, topic: str) -> Parse:
    """Return a parser that calls `parse`, and then encodes keys and values that are JSON.

    JSON has the same meaning as with `value.format` `json`. Without a schema, keys and values stay
    as they are. Raises the errors of `TypedEncoding.of_topic`, and `SchemaError` for types that
    JSON does not have.
    """
    found = {part: encoding.of_topic(part, topic) for part in encoding.parts}
    parts = [_Part(name, write) for name, write in found.items() if write is not None]

    def read(piece: Piece) -> Parsed:
        parsed = parse(piece)
        for each in parts:
            parsed = each.encoded(parsed)
        return parsed

    return read


class _Part:
    """The keys, or the values, of lines."""

    def __init__(self, name: str, write: TypedWrite) -> None:
        self._name, self._write = name, write
        self._reader = JsonReader(write.writer.arrow_type)

    def encoded(self, parsed: Parsed) -> Parsed:
        """Return the records, encoded, up to the first line that does not fit the schema."""
        names = parsed.columns.schema.names
        if self._name not in names:
            return parsed
        found = decode_column(self._reader, parsed.columns[self._name], _JSON)
        bad = found.status.nonzero()[0].tolist()
        if bad:
            return self.encoded(self._before(parsed, bad[0], found.reason(bad[0])))
        try:
            column = self._write.encode(found.array)
        except UnencodableRowError as error:
            return self.encoded(self._before(parsed, error.row, error.reason))
        columns = [column if each == self._name else parsed.columns[each] for each in names]
        batch = pa.RecordBatch.from_arrays(columns, names)
        return Parsed(batch, parsed.lines, parsed.error)

    def _before(self, parsed: Parsed, row: int, reason: str) -> Parsed:
        line = parsed.lines[row]
        error = LineError(line, line, f"its {self._name} does not fit the schema: {reason}")
        return Parsed(parsed.columns.slice(0, row), parsed.lines[:row], error)
