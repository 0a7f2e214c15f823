"""Records of one poll, from several partitions, as Arrow or one by one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.errors import ConfigurationError, LocalError, RemoteError
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.records import TimestampType, schema
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import PARTS, error_column

Deserializer: TypeAlias = Callable[[bytes], Any]
"""A function that makes a value from bytes. It is not called for null."""

_MOST_OF_A_REASON = 200
_ERRORS = tuple(error_column(each) for each in PARTS)


def deserializer(name: str, given: object) -> Deserializer | None:
    """Return the given deserializer. Raises `ConfigurationError` if it cannot be called."""
    if given is None or callable(given):
        return given
    found = f"found a {type(given).__name__}, which cannot be called"
    raise ConfigurationError(name, found, "Give a function of bytes, as `bytes.decode`")


class RecordDeserializationError(RemoteError):
    """Error of a record that cannot become Python objects. The original error is its cause.

    `reason` is the type and text of the cause. `field` is `key` or `value`, or a column whose
    value Python cannot hold. To read on after the record, seek to `offset + 1`. The text of the
    cause may quote the record, so only its first 200 characters are shown.
    """

    def __init__(
        self, topic_partition: TopicPartition, offset: int, field: str, reason: str
    ) -> None:
        super().__init__(topic_partition, offset, field, reason)
        self.topic_partition, self.offset, self.field = topic_partition, offset, field
        self.reason = reason

    def _text(self) -> str:
        return (
            f"{self.topic_partition} at offset {self.offset}: its {self.field} cannot be "
            f"deserialized ({self.reason}); seek to offset {self.offset + 1} to read on after it"
        )


def _reason(error: Exception) -> str:
    text = str(error)
    if len(text) > _MOST_OF_A_REASON:
        text = text[:_MOST_OF_A_REASON] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class MixedColumnsError(LocalError):
    """Error of `to_arrow` for topics whose values have different types.

    `topics` has one topic for each type.
    """

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(tuple(topics))
        self.topics = tuple(topics)

    def _text(self) -> str:
        return (
            f"The topics {', '.join(map(repr, self.topics))} have columns of different types, "
            "which are no one table: take those of one topic by `of(topic)`, or read all with one "
            "schema, named by `value_schema_subject` or, of keys, `key_schema_subject`"
        )


class ConsumerRecord(NamedTuple):
    """One record. Fields of columns that were not requested are None, or empty for headers.

    If bad records are `null`, `key_error` and `value_error` describe the error, as a dict of
    `reason`, `schema_id` and `bytes`.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_type: TimestampType | None
    key: Any
    value: Any
    headers: Sequence[tuple[str, bytes | None]]
    key_error: dict[str, Any] | None = None
    value_error: dict[str, Any] | None = None


class ConsumerRecords:
    """Records of one poll. `len` counts them, and iteration yields each.

    Iteration applies the deserializers, `to_arrow` does not. `value_format` and `key_format`
    decode for both.
    """

    def __init__(
        self,
        batches: Sequence[tuple[TopicPartition, pa.RecordBatch]],
        columns: tuple[str, ...],
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        next_offsets: Mapping[TopicPartition, OffsetAndMetadata] = MappingProxyType({}),
        *,
        without_rows: pa.Schema | None = None,
    ) -> None:
        """Keep the records. `without_rows` is the schema without records, for typed values."""
        self._batches = batches
        self._columns = columns
        self._without_rows = without_rows
        self._deserializers = {"key": key_deserializer, "value": value_deserializer}
        self._next_offsets = next_offsets

    def __len__(self) -> int:
        return sum(batch.num_rows for _, batch in self._batches)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return self._records(self._batches)

    def __repr__(self) -> str:
        counts = ", ".join(f"{each}: {len(self.of(each))}" for each in self.partitions)
        return f"ConsumerRecords({counts})"

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that have records here."""
        return list(dict.fromkeys(where for where, _ in self._batches))

    def first_offset(self, topic_partition: TopicPartition) -> int:
        """Return the offset of the first record of a partition that has records here."""
        first = next(batch for where, batch in self._batches if where == topic_partition)
        offset: int = first.column("offset")[0].as_py()
        return offset

    @property
    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions after these records, to store or commit with their results.

        A position may be beyond the last record, because records that are not shown have offsets.
        """
        return {each: self._next_offsets[each] for each in self.partitions}

    def of(self, where: TopicPartition | str) -> "ConsumerRecords":
        """Return only the records of one partition, or of one topic."""
        mine = [each for each in self._batches if where in (each[0], each[0].topic)]
        key, value = self._deserializers["key"], self._deserializers["value"]
        return ConsumerRecords(
            mine, self._columns, key, value, self._next_offsets, without_rows=self._without_rows
        )

    def to_batches(self) -> list[pa.RecordBatch]:
        """Return the batches as decoded, one or more for each partition, in offset order."""
        return [batch.select(self._shown(batch.schema)) for _, batch in self._batches]

    def to_arrow(self) -> pa.Table:
        """Return all records as one table, without a copy.

        Raises `MixedColumnsError` if topics have values of different types.
        """
        batches = self.to_batches()
        if batches and self._without_rows is not None:
            self._check_alike(batches)
            return pa.Table.from_batches(batches)
        found = schema(self._columns) if self._without_rows is None else self._without_rows
        names = self._shown(found)
        return pa.Table.from_batches(batches, schema=pa.schema([found.field(n) for n in names]))

    def _shown(self, found: pa.Schema) -> list[str]:
        """Return the requested columns and the error columns."""
        return [*self._columns, *(each for each in _ERRORS if each in found.names)]

    def _check_alike(self, batches: Sequence[pa.RecordBatch]) -> None:
        topics: dict[pa.Schema, str] = {}
        for (where, _), batch in zip(self._batches, batches, strict=True):
            topics.setdefault(batch.schema, where.topic)
        if len(topics) > 1:
            raise MixedColumnsError(list(topics.values()))

    def _records(
        self, batches: Iterable[tuple[TopicPartition, pa.RecordBatch]]
    ) -> Iterator[ConsumerRecord]:
        for where, batch in batches:
            for row in _rows(where, batch):
                yield self._record(where, row)

    def _record(self, where: TopicPartition, row: Mapping[str, Any]) -> ConsumerRecord:
        timestamp_type = row.get("timestampType")
        return ConsumerRecord(
            *where,
            row["offset"],
            row.get("timestamp"),
            None if timestamp_type is None else TimestampType(timestamp_type),
            self._deserialized("key", where, row),
            self._deserialized("value", where, row),
            [(each["key"], each["value"]) for each in row.get("headers") or ()],
            row.get("key_error"),
            row.get("value_error"),
        )

    def _deserialized(self, field: str, where: TopicPartition, row: Mapping[str, Any]) -> Any:
        deserializer, data = self._deserializers[field], row.get(field)
        if deserializer is None or data is None:
            return data
        try:
            return deserializer(data)
        except Exception as error:
            reason = _reason(error)
            raise RecordDeserializationError(where, row["offset"], field, reason) from error


def _rows(where: TopicPartition, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows as Python objects, with timestamps as Kafka's milliseconds."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    if "timestamp" in columns:
        columns["timestamp"] = pc.divide(columns["timestamp"].cast(pa.int64()), 1000)
    try:
        lists = {name: column.to_pylist() for name, column in columns.items()}
    except (ValueError, OverflowError):
        yield from _row_by_row(where, columns)
        return
    for values in zip(*lists.values(), strict=True):
        yield dict(zip(lists, values, strict=True))


def _row_by_row(where: TopicPartition, columns: Mapping[str, pa.Array]) -> Iterator[dict[str, Any]]:
    """Yield the rows up to the first one that Python cannot hold, as with the year 10,000."""
    for row, offset in enumerate(columns["offset"].to_pylist()):
        found: dict[str, Any] = {}
        for name, column in columns.items():
            try:
                found[name] = column[row].as_py()
            except (ValueError, OverflowError) as error:
                reason = f"{_reason(error)}; `to_arrow()` has it"
                raise RecordDeserializationError(where, offset, name, reason) from error
        yield found
