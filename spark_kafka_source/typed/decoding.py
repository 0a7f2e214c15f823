"""Decoding of a chunk's keys and values to typed columns, and the treatment of bad records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.logs import logger_of
from spark_kafka_source.records import Chunk
from spark_kafka_source.records.columns import FIELDS, column, gather
from spark_kafka_source.records.headers import locate_headers, within_limit
from spark_kafka_source.records.locate import locate
from spark_kafka_source.records.located import Located, Slices
from spark_kafka_source.registry import (
    Framed,
    Framing,
    GlueConfig,
    LocatedRowHeaders,
    RegistryConfig,
    RowPrograms,
    SchemaId,
    SchemaSource,
    ShippedSchemas,
    WriterPrograms,
    hints,
)
from spark_kafka_source.secret import printable
from spark_kafka_source.typed.config import BadRecords, error_column
from spark_kafka_source.typed.errors import BadRecordError
from spark_kafka_source.typed.letters import Cause, Letters
from spark_kafka_source.values import Decoded, Encoded, Fault, SchemaText, SchemaType, ValueReader

logger = logger_of(__name__)

ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("bytes", pa.binary())])
"""The type of `key_error` and `value_error`. A row that is not bad has null."""

MOST_UNKNOWN_BEFORE_FAILURE = 100

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TypedPart:
    """Decoding of the keys, or the values, of records. It stays the same while a query lives."""

    reader: ValueReader
    framing: Framing
    known: Mapping[SchemaId, SchemaText]
    """Schemas that need no request to a registry, by id."""
    registry: RegistryConfig | GlueConfig | None = None
    """The registry for all other schemas, if there is one."""
    needs_schemas: bool = True
    """Whether decoding depends on the schema that wrote a record, not on its rules alone."""
    rules_option: str = ""
    """The option that lets schemas have rules. If empty, they may have rules."""

    def source(self, registry: SchemaSource | None = None) -> SchemaSource:
        """Return the source of the schemas that wrote the records."""
        if not self.needs_schemas and self.registry is None:
            return _AnySchema()
        return ShippedSchemas(self.known, registry, self.rules_option)


class _AnySchema:
    """Source of every schema, for a format whose values describe themselves."""

    def schema(self, id: SchemaId) -> SchemaText:
        """See `SchemaSource`."""
        return SchemaText(SchemaType.JSON, "")


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """The columns of a query, and the decoding of its typed parts."""

    columns: tuple[str, ...]
    """The names of the columns in their order, without the error columns."""
    parts: Mapping[str, TypedPart]
    """The typed parts, by `key` and `value`. A part that is missing here stays bytes."""
    bad_records: BadRecords = BadRecords.FAIL
    bad_records_topic: str = ""
    """The topic of dead letters, if bad records go to one."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of all record batches. All columns are nullable."""
        types = {**FIELDS} | {name: part.reader.arrow_type for name, part in self.parts.items()}
        fields = [(name, types[name]) for name in self.columns]
        return pa.schema(
            [*fields, *((error_column(part), ERROR_TYPE) for part in self.error_parts)]
        )

    @property
    def error_parts(self) -> Sequence[str]:
        """The parts whose errors have a column."""
        if self.bad_records is not BadRecords.NULL:
            return ()
        return [name for name in self.columns if name in self.parts]


@dataclass(frozen=True, slots=True)
class TypedBatch:
    """A chunk's records, without the bad ones unless their errors have a column."""

    batch: pa.RecordBatch
    failure: BadRecordError | None = None
    """The error of the bad record after `batch`, if bad records fail."""
    letters: Letters | None = None
    """The bad records, if they go to a topic: to be written before `batch` counts as read."""


def _nowhere(letters: Letters) -> None:
    raise ValueError(f"no way to write letters of {letters.topic_partition} was given")


class TypedRecords:
    """Decoder of one task's chunks to record batches, one chunk after the other."""

    def __init__(self, typed: TypedColumns, sources: Mapping[str, SchemaSource]) -> None:
        """`sources` holds, for each typed part, the source of the schemas that wrote it."""
        self._typed = typed
        self._schema = typed.schema
        # Where the first bad record ends the read, a long search for the others is in vain.
        is_first_enough = typed.bad_records is BadRecords.FAIL
        most_unknown = MOST_UNKNOWN_BEFORE_FAILURE if is_first_enough else None
        self._decoders = {
            name: _PartDecoder(name, part, sources[name], most_unknown)
            for name, part in typed.parts.items()
            if name in typed.columns
        }
        self.skipped = 0
        """How many records were skipped so far."""

    def record_batch(
        self, chunk: Chunk, send: Callable[[Letters], object] = _nowhere
    ) -> pa.RecordBatch:
        """Return the chunk's records as `records.record_batch` does, with the typed parts decoded.

        `send` gets the bad records if they go to a topic. Raises `BadRecordError` if bad records
        fail, the errors of `record_batch`, and, for any setting of `badRecords`, errors that
        prevent the lookup of a schema.
        """
        typed_batch = self.decoded(chunk)
        if typed_batch.failure is not None:
            raise typed_batch.failure
        if typed_batch.letters is not None:
            send(typed_batch.letters)
        return typed_batch.batch

    def decoded(self, chunk: Chunk) -> TypedBatch:
        """Decode a chunk, and do with its bad records what `badRecords` says.

        If bad records fail, the batch has the records before the first one.
        """
        located = within_limit(chunk, locate(chunk))
        decoded = {name: decoder.decode(chunk, located) for name, decoder in self._decoders.items()}
        bad = np.zeros(len(located.offset), np.bool_)
        for part in decoded.values():
            bad |= part.bad
        if not bad.any() or self._typed.bad_records is BadRecords.NULL:
            return TypedBatch(self._batch(chunk, located, decoded, None))
        if self._typed.bad_records is BadRecords.FAIL:
            first = int(bad.argmax())
            before = np.arange(len(bad)) < first
            failure = self._error(chunk, located, decoded, first)
            batch = self._batch(chunk, located.where(before), decoded, before)
            return TypedBatch(batch, failure=failure)
        good = self._batch(chunk, located.where(~bad), decoded, ~bad)
        if self._typed.bad_records is BadRecords.SKIP:
            self._skip(chunk, located, decoded, bad)
            return TypedBatch(good)
        causes = [_cause(decoded, row) for row in np.flatnonzero(bad).tolist()]
        return TypedBatch(good, letters=Letters.of(chunk, located.where(bad), causes))

    def ask_again(self) -> None:
        """Forget the missing and unusable schemas: they may exist by now."""
        for decoder in self._decoders.values():
            decoder.programs.forget_bad()

    def _batch(
        self,
        chunk: Chunk,
        located: Located,
        decoded: Mapping[str, "_DecodedPart"],
        kept: Mask | None,
    ) -> pa.RecordBatch:
        """Make the record batch. `located` has only the kept rows, `decoded` has all rows."""
        arrays = []
        for name in self._typed.columns:
            if name in decoded:
                array = decoded[name].found.array
                arrays.append(array if kept is None else array.filter(pa.array(kept)))
            else:
                arrays.append(column(name, chunk, located))
        arrays += [decoded[name].errors(chunk, located) for name in self._typed.error_parts]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _error(
        self, chunk: Chunk, located: Located, decoded: Mapping[str, "_DecodedPart"], row: int
    ) -> BadRecordError:
        part = next(part for part in decoded.values() if part.bad[row])
        start, end = part.slices.bounds[2 * row : 2 * row + 2].tolist()
        data = bytes(memoryview(chunk.data)[start:end])
        offset = int(located.offset[row])
        return BadRecordError(chunk.topic_partition, offset, part.name, part.described(row), data)

    def _skip(
        self, chunk: Chunk, located: Located, decoded: Mapping[str, "_DecodedPart"], bad: Mask
    ) -> None:
        if not self.skipped:
            error = self._error(chunk, located, decoded, int(bad.argmax()))
            logger.warning(
                "Skipped a bad record, and will skip later ones without a log line: %s", error
            )
        self.skipped += int(bad.sum())


class _PartDecoder:
    """Decoder of the keys, or of the values."""

    def __init__(
        self, name: str, part: TypedPart, source: SchemaSource, most_unknown: int | None
    ) -> None:
        self._name, self._part = name, part
        self.programs = WriterPrograms(
            part.reader,
            source,
            needs_schemas=part.needs_schemas,
            most_unknown=most_unknown if part.needs_schemas else None,
        )

    def decode(self, chunk: Chunk, located: Located) -> "_DecodedPart":
        slices = located.key if self._name == "key" else located.value
        starts = slices.bounds[0::2].astype(np.int64)
        ends = slices.bounds[1::2].astype(np.int64)
        null = slices.null if slices.null.any() else None
        headers = None
        if located.header_count.any():
            located_headers = locate_headers(chunk, located)
            headers = LocatedRowHeaders(chunk.data, located_headers, located.header_count)
        framed = self._part.framing.frame(chunk.data, starts, ends, null=null, headers=headers)
        written = self.programs.of(framed)
        data = chunk.data if framed.data is None else framed.data
        value_ends = ends if framed.ends is None else framed.ends
        decoded = self._part.reader.decode(
            written.programs,
            Encoded(data, framed.starts, value_ends, null=null, program_of=written.program_of),
        )
        others: Mapping[int, str] = {}
        bad = np.flatnonzero(decoded.status)
        if len(bad):
            rows = Encoded(chunk.data, starts, ends)
            others = hints(self._part.framing, framed, rows, bad, headers)
        return _DecodedPart(self._name, slices, framed, written, decoded, others)


def _cause(decoded: Mapping[str, "_DecodedPart"], row: int) -> Cause:
    """Return the cause of a bad row. The reason names both parts if both are bad."""
    bad = [part for part in decoded.values() if part.bad[row]]
    reasons = [f"the {part.name} cannot be decoded: {part.described(row)}" for part in bad]
    part = next((part for part in bad if part.name == "value"), bad[0])
    return Cause(part.name, "; ".join(reasons), part.schema_id(row))


@dataclass(frozen=True, slots=True)
class _DecodedPart:
    """Decoded part (keys or values) of a chunk's records."""

    name: str
    slices: Slices
    framed: Framed
    written: RowPrograms
    found: Decoded
    hints: Mapping[int, str]
    """What reads the rows of other registries, by row."""

    @property
    def bad(self) -> Mask:
        """The mask of bad rows."""
        bad: Mask = self.found.status != 0
        return bad

    def reason(self, row: int) -> str:
        """Return why a row is bad."""
        is_unknown = self.found.status[row] == Fault.NO_PROGRAM
        reason = self.written.reason(row) if is_unknown else self.found.reason(row)
        # Names and values in it are the producer's, and the text goes to logs and terminals.
        return printable(f"{reason}; {self.hints[row]}" if row in self.hints else reason)

    def schema_id(self, row: int) -> SchemaId | None:
        """Return the id of a row's schema, or None if the row has none."""
        key = self.written.key(row)
        return None if key is None or key.id == NO_ID else key.id

    def described(self, row: int) -> str:
        """Return why a row is bad, with the id of its schema if known."""
        id, reason = self.schema_id(row), self.reason(row)
        return reason if id is None or f"schema {id}" in reason else f"schema {id}: {reason}"

    def errors(self, chunk: Chunk, located: Located) -> pa.StructArray:
        """Return the error column. Its bytes are the whole key or value, framing included."""
        bad = self.bad
        count = len(bad)
        if not bad.any():
            return pa.nulls(count, ERROR_TYPE)
        rows = np.flatnonzero(bad).tolist()
        places = np.full(count, -1, np.int64)
        places[rows] = np.arange(len(rows))
        places_or_null = pa.array(places, mask=~bad)
        ids = [self.schema_id(row) for row in rows]
        fields = [
            pa.array([self.reason(row) for row in rows], pa.string()),
            pa.array([id if isinstance(id, int) else None for id in ids], pa.int32()),
            gather(chunk.data, self.slices.where(bad)),
        ]
        return pa.StructArray.from_arrays(
            [field.take(places_or_null) for field in fields],
            fields=list(ERROR_TYPE),
            mask=pa.array(~bad),
        )


NO_ID = -1
"""The id of a schema that no registry gave, or of no schema."""
