"""Deserializers of a consumer's keys and values, applied to the records that a poll returns."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from spark_kafka_source.client.serde_arguments import DESERIALIZE, Headers, Serde, serde
from spark_kafka_source.consumer.consumer_records import (
    ConsumerRecord,
    PartitionRecords,
    headers_of,
    records_of,
)
from spark_kafka_source.errors import ConfigurationError, RemoteError
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import TypedConfig
from spark_kafka_source.values.as_python import as_python


class HasDeserialize(Protocol):
    """An object with Kafka's method."""

    @property
    def deserialize(self) -> Callable[..., Any]:
        """The function of the topic and the bytes, or of the topic, the headers and the bytes."""


Deserializer: TypeAlias = Callable[..., Any] | HasDeserialize | str
"""A function, an object, or the name of a class of Kafka's; see `serde`. Not called for null."""

_MOST_OF_A_REASON = 200


class RecordDeserializationError(RemoteError):
    """Error of a deserializer for one record. The deserializer's own error is its cause.

    `field` is `key` or `value`. `reason` is the type and text of the cause. The text may quote the
    record, so only its first 200 characters are shown. `record` is the record with the bytes of its
    key and value, to keep it elsewhere (KIP-1036). To read on after it, seek to `offset + 1`.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        offset: int,
        field: str,
        reason: str,
        record: ConsumerRecord | None = None,
    ) -> None:
        super().__init__(topic_partition, offset, field, reason, record)
        self.topic_partition, self.offset, self.field = topic_partition, offset, field
        self.reason, self.record = reason, record

    def _text(self) -> str:
        return (
            f"{self.topic_partition} at offset {self.offset}: its {self.field} cannot be "
            f"deserialized ({self.reason}); seek to offset {self.offset + 1} to read on after it"
        )


class Deserializers:
    """The deserializers of one consumer, by `key` and `value`."""

    def __init__(self, given: Mapping[str, Serde]) -> None:
        self._given = given

    @classmethod
    def of(
        cls,
        given: Mapping[str, tuple[str, object]],
        typed: TypedConfig,
        configuration: Mapping[str, object],
    ) -> "Deserializers":
        """Return the deserializers, configured. `given` has the argument's name and value by part.

        Raises `ConfigurationError`.
        """
        for format in typed.parts:
            name, deserializer = given[format.part]
            if deserializer is not None:
                found = f"is given as well as '{format.option('format')}'"
                raise ConfigurationError(name, found, "Give one of them")
        serdes = {part: serde(*each, DESERIALIZE, configuration) for part, each in given.items()}
        return cls({part: serde for part, serde in serdes.items() if serde is not None})

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the deserializers need beside their own."""
        return ("headers",) if any(serde.takes_headers for serde in self._given.values()) else ()

    def close(self) -> None:
        """Close all deserializers. Raises the error of one of them."""
        with ExitStack() as closing:
            for deserializer in self._given.values():
                closing.callback(deserializer.close)

    def deserialized(
        self, where: TopicPartition, batch: pa.RecordBatch
    ) -> tuple[PartitionRecords, RecordDeserializationError | None]:
        """Return all records and None, or the records before the first bad one and its error."""
        columns: dict[str, list[Any]] = {}
        failure: RecordDeserializationError | None = None
        for part, deserializer in self._given.items():
            if part in batch.schema.names:
                # After a bad key only the values before it count.
                columns[part], error = _column(part, deserializer, where, batch)
                if error is not None:
                    failure, batch = error, batch.slice(0, len(columns[part]))
        values = {part: objects[: batch.num_rows] for part, objects in columns.items()}
        return PartitionRecords(where, batch, values), failure


def _column(
    part: str, given: Serde, where: TopicPartition, batch: pa.RecordBatch
) -> tuple[list[Any], RecordDeserializationError | None]:
    headers: Sequence[Headers] = headers_of(batch) if given.takes_headers else [()] * batch.num_rows
    call, topic, objects = given.call, where.topic, list[Any]()
    try:
        for record_headers, data in zip(headers, as_python(batch.column(part)), strict=True):
            objects.append(None if data is None else call(topic, record_headers, data))
    except Exception as error:
        return objects, _failure(part, where, batch.slice(len(objects), 1), error)
    return objects, None


def _failure(
    part: str, where: TopicPartition, batch: pa.RecordBatch, cause: Exception
) -> RecordDeserializationError:
    """Return the error of the only record of the batch."""
    (record,) = records_of(PartitionRecords(where, batch), batch.schema.names)
    offset, reason = record.offset, _reason(cause)
    failure = RecordDeserializationError(where, offset, part, reason, record)
    failure.__cause__ = cause
    return failure


def _reason(error: Exception) -> str:
    text = str(error)
    if len(text) > _MOST_OF_A_REASON:
        text = text[:_MOST_OF_A_REASON] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
