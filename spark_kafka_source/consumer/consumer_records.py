"""What a poll hands out: records of several partitions, as Arrow or one by one."""

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
"""Makes a value of a record's bytes; it is not asked where there are none."""

_MOST_OF_A_REASON = 200
_ERRORS = tuple(error_column(each) for each in PARTS)


def deserializer(name: str, given: object) -> Deserializer | None:
    """What is given by this name, if it can be called. Raises `ConfigurationError`."""
    if given is None or callable(given):
        return given
    found = f"found a {type(given).__name__}, which cannot be called"
    raise ConfigurationError(name, found, "Give a function of bytes, as `bytes.decode`")


class RecordDeserializationError(RemoteError):
    """A deserializer raised; that error is the cause of this one, and `reason` its type and text.

    `field` is `key` or `value`. To read on after it, seek to `offset + 1`. The text of the cause
    may quote the record, so that no more than 200 characters of it are shown.
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
    """Records of topics whose values have different types were to be one table.

    `topics` are some of them, one for each type.
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
    """One record. Of columns that the consumer was not asked for it knows nothing: None.

    Where bad records are `null`, `key_error` and `value_error` say what is bad, as a dict of
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
    """The records that one poll brought; `len` counts them, and an iteration yields each.

    Iterating deserializes, `to_arrow` does not. What a consumer decodes, by `value_format` or
    `key_format`, is decoded either way.
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
        """`without_rows` is the schema of no records, where it is not always the same."""
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
        """Those that have records here."""
        return list(dict.fromkeys(where for where, _ in self._batches))

    def first_offset(self, topic_partition: TopicPartition) -> int:
        """That of the first record of a partition that has some here."""
        first = next(batch for where, batch in self._batches if where == topic_partition)
        offset: int = first.column("offset")[0].as_py()
        return offset

    @property
    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the consumer goes on after these, to be kept or committed with what came of them.

        It may be further than after the last record: what is not shown takes offsets, too.
        """
        return {each: self._next_offsets[each] for each in self.partitions}

    def of(self, where: TopicPartition | str) -> "ConsumerRecords":
        """Only those of one partition, or of one topic."""
        mine = [each for each in self._batches if where in (each[0], each[0].topic)]
        key, value = self._deserializers["key"], self._deserializers["value"]
        return ConsumerRecords(
            mine, self._columns, key, value, self._next_offsets, without_rows=self._without_rows
        )

    def to_batches(self) -> list[pa.RecordBatch]:
        """As they were decoded, some for each partition, in the order of their offsets."""
        return [batch.select(self._shown(batch.schema)) for _, batch in self._batches]

    def to_arrow(self) -> pa.Table:
        """All of them as one table; nothing is copied.

        Raises `MixedColumnsError` where topics have values of different types.
        """
        batches = self.to_batches()
        if batches and self._without_rows is not None:
            self._check_alike(batches)
            return pa.Table.from_batches(batches)
        found = schema(self._columns) if self._without_rows is None else self._without_rows
        names = self._shown(found)
        return pa.Table.from_batches(batches, schema=pa.schema([found.field(n) for n in names]))

    def _shown(self, found: pa.Schema) -> list[str]:
        """The columns that were asked for, and those of errors."""
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
    """The rows as Python has them, but timestamps as the milliseconds that Kafka has."""
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
    """The same where a row has what Arrow has and Python has not, such as the year 10,000."""
    for row, offset in enumerate(columns["offset"].to_pylist()):
        found: dict[str, Any] = {}
        for name, column in columns.items():
            try:
                found[name] = column[row].as_py()
            except (ValueError, OverflowError) as error:
                reason = f"{_reason(error)}; `to_arrow()` has it"
                raise RecordDeserializationError(where, offset, name, reason) from error
        yield found
