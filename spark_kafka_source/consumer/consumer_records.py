"""Records of one poll, from several partitions, as Arrow or one by one."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise, repeat
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from spark_kafka_source.errors import LocalError
from spark_kafka_source.fetch.offsets import OffsetAndEpoch
from spark_kafka_source.fetch.positions import Positions
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.records import TimestampType, schema
from spark_kafka_source.records.columns import MICROSECONDS
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import PARTS, error_column
from spark_kafka_source.values.as_python import as_python

Deserialized: TypeAlias = Mapping[str, Sequence[Any]]
"""The values that deserializers made of a batch, by `key` and `value`."""

_ERRORS = tuple(error_column(each) for each in PARTS)
_TIMESTAMP_TYPES = tuple(TimestampType)


class PartitionRecords(NamedTuple):
    """Records of one partition that a poll returns."""

    topic_partition: TopicPartition
    batch: pa.RecordBatch
    deserialized: Deserialized = MappingProxyType({})
    """For parts that are not here, the batch has what the records show."""


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


# Of all fields at once, and for each record: `ConsumerRecord(...)` is a function of Python's.
_record = partial(tuple.__new__, ConsumerRecord)
# The same holds here.
_offset_and_epoch = partial(tuple.__new__, OffsetAndEpoch)


class ConsumerRecords:
    """Records of one poll. `len` counts them, and iteration yields each.

    Iteration shows what the deserializers made, and `to_arrow` bytes. `value_format` and
    `key_format` decode for both. A time that Python has no object for is a text where iteration
    shows it: see `as_python`.
    """

    def __init__(
        self,
        parts: Sequence[PartitionRecords],
        columns: tuple[str, ...],
        next_offsets: Mapping[TopicPartition, OffsetAndMetadata] = MappingProxyType({}),
        *,
        without_rows: pa.Schema | None = None,
    ) -> None:
        """Keep the records. `without_rows` is the schema without records, for typed values."""
        self._parts = parts
        self._by_partition: dict[TopicPartition, list[PartitionRecords]] = {}
        for part in parts:
            self._by_partition.setdefault(part.topic_partition, []).append(part)
        self._columns = columns
        self._without_rows = without_rows
        self._next_offsets = next_offsets

    def __len__(self) -> int:
        return sum(part.batch.num_rows for part in self._parts)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(
            records_of(part, self._shown(part.batch.schema)) for part in self._parts
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{each}: {len(self.of(each))}" for each in self.partitions)
        return f"ConsumerRecords({counts})"

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that have records here."""
        return list(self._by_partition)

    def first_offset(self, topic_partition: TopicPartition) -> int:
        """Return the offset of the first record of a partition that has records here."""
        offset: int = self._by_partition[topic_partition][0].batch.column("offset")[0].as_py()
        return offset

    @property
    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions after these records, to store or commit with their results.

        A position may be beyond the last record, because records that are not shown have offsets.
        """
        return {partition: self._next_offsets[partition] for partition in self._by_partition}

    def of(self, where: TopicPartition | str) -> "ConsumerRecords":
        """Return only the records of one partition, or of one topic."""
        if isinstance(where, str):
            parts = [part for part in self._parts if part.topic_partition.topic == where]
        else:
            parts = self._by_partition.get(where, [])
        return ConsumerRecords(
            parts, self._columns, self._next_offsets, without_rows=self._without_rows
        )

    def to_batches(self) -> list[pa.RecordBatch]:
        """Return the batches as decoded, one or more for each partition, in offset order."""
        return [part.batch.select(self._shown(part.batch.schema)) for part in self._parts]

    def to_arrow(self) -> pa.Table:
        """Return all records as one table, without a copy.

        Raises `MixedColumnsError` if topics have values of different types.
        """
        batches = self.to_batches()
        if batches and self._without_rows is not None:
            self._check_alike(batches)
            return pa.Table.from_batches(batches)
        fields = schema(self._columns) if self._without_rows is None else self._without_rows
        shown = pa.schema([fields.field(name) for name in self._shown(fields)])
        return pa.Table.from_batches(batches, schema=shown)

    def _shown(self, fields: pa.Schema) -> list[str]:
        """Return the requested columns and the error columns."""
        return [*self._columns, *(name for name in _ERRORS if name in fields.names)]

    def _check_alike(self, batches: Sequence[pa.RecordBatch]) -> None:
        topics: dict[pa.Schema, str] = {}
        for part, batch in zip(self._parts, batches, strict=True):
            topics.setdefault(batch.schema, part.topic_partition.topic)
        if len(topics) > 1:
            raise MixedColumnsError(list(topics.values()))


def records_of(part: PartitionRecords, shown: Collection[str]) -> Iterator[ConsumerRecord]:
    """Return the records of a batch, with these of its columns. Converts whole columns."""
    where, batch, deserialized = part
    count = batch.num_rows

    def column(name: str, objects: Callable[[pa.Array], Iterable[Any]]) -> Iterable[Any]:
        if name not in shown:
            return repeat(None, count)
        return deserialized[name] if name in deserialized else objects(batch.column(name))

    fields = zip(
        repeat(where.topic, count),
        repeat(where.partition, count),
        batch.column("offset").to_numpy().tolist(),  # It is always there: see `Decoding`.
        column("timestamp", _milliseconds),
        column("timestampType", _timestamp_types),
        column("key", as_python),
        column("value", as_python),
        headers_of(batch) if "headers" in shown else map(list, repeat((), count)),
        *(column(name, as_python) for name in _ERRORS),
        strict=True,
    )
    return map(_record, fields)


def _milliseconds(timestamps: pa.Array) -> list[int]:
    times_ms: list[int] = (timestamps.view(pa.int64()).to_numpy() // MICROSECONDS).tolist()
    return times_ms


def _timestamp_types(numbers: pa.Array) -> Iterator[TimestampType]:
    return map(_TIMESTAMP_TYPES.__getitem__, numbers.to_numpy().tolist())


def headers_of(batch: pa.RecordBatch) -> list[list[tuple[str, bytes | None]]]:
    """Return the headers of each record. A record without headers has an empty list."""
    column = batch.column("headers")
    if column.null_count == len(column):
        return [[] for _ in range(len(column))]
    bounds = column.offsets.to_numpy()
    pairs = column.values.slice(bounds[0], bounds[-1] - bounds[0])
    headers = list(zip(as_python(pairs.field("key")), as_python(pairs.field("value")), strict=True))
    return [headers[start:end] for start, end in pairwise((bounds - bounds[0]).tolist())]


def one_by_one(records: ConsumerRecords, positions: Positions) -> Iterator[ConsumerRecord]:
    """Yield the records. The positions of their partitions move with each of them.

    A partition that is paused, revoked or moved meanwhile yields no more.
    """
    moving = {partition: positions[partition] for partition in records.partitions}
    ends = {partition: position.next for partition, position in moving.items()}
    marks = {each: moving[each].back_to(records.first_offset(each)) for each in moving}
    for partition, position in moving.items():
        mark = marks[partition]
        epoch = -1 if mark is None else mark.leader_epoch
        for record in records.of(partition):
            is_assigned = positions.get(partition) is position
            if not is_assigned or position.paused or position.next is not mark:
                break  # Paused, revoked or moved by the user.
            position.next = mark = _offset_and_epoch((record.offset + 1, epoch))
            yield record
        else:
            if position.next is mark:
                position.next = ends[partition]
