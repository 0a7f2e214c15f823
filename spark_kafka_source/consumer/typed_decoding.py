"""Typed record batches of a consumer, with schema lookups in other threads."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Generic, TypeVar

import pyarrow as pa

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.background import Background
from spark_kafka_source.consumer.decoding import NotReadyYetError
from spark_kafka_source.consumer.letter_writes import LetterWrites
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.records import Chunk
from spark_kafka_source.records.columns import FIELDS
from spark_kafka_source.registry import GlueClient, RegistryClient, SchemaId, client_of
from spark_kafka_source.typed import (
    ERROR_TYPE,
    BadRecordError,
    BadRecords,
    TypedColumns,
    TypedConfig,
    TypedRecords,
    error_column,
    plan_columns,
)
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType
from spark_kafka_source.values.avro import TIME
from spark_kafka_source.values.protobuf.files import descriptors_of

ASK_AGAIN_SECONDS = 60.0
"""The time until the consumer tries schemas again that could not be used."""

_ALL_TOPICS = ""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TypedDecoding:
    """Decoder of chunks into record batches, for the thread of a consumer.

    A topic keeps the schema that it had at its first read. No method waits for an answer.
    """

    def __init__(
        self,
        config: TypedConfig,
        columns: tuple[str, ...],
        client: KafkaClient,
        waiting: Waiting,
    ) -> None:
        """Plan the columns. Raises `ConfigurationError` for a given schema that cannot be used."""
        self._config, self._columns = config, columns
        self._background = background = Background(waiting.wakeup)
        topic = config.bad_records_topic
        self._letters = LetterWrites(client, topic, waiting) if topic else None
        self._registry = None if config.registry is None else client_of(config.registry)
        self._plans = _Lookups(background, self._plan)
        self._schemas = None if self._registry is None else _Schemas(background, self._registry)
        self._is_by_topic = any(part.is_by_topic for part in config.parts)
        self._records: dict[str, TypedRecords] = {}
        self._kinds: set[pa.Schema] = set()
        self._ask_again_at_seconds = 0.0
        if not any(part.has_schema and not part.schema for part in config.parts):
            self._keep(_ALL_TOPICS, self._plan(_ALL_TOPICS))

    def close(self) -> None:
        """Give up the lookups that have no answer."""
        if self._registry is not None:
            self._registry.end()
        if self._letters is not None:
            self._letters.close()
        self._background.close()

    @property
    def skipped(self) -> int:
        """The number of bad records that were left out."""
        return sum(records.skipped for records in self._records.values())

    @property
    def sent(self) -> int:
        """The number of bad records that are in the topic of dead letters."""
        return 0 if self._letters is None else self._letters.count

    @property
    def schema(self) -> pa.Schema:
        """The schema of a table without rows. An unknown or ambiguous type is null."""
        if len(self._kinds) == 1:
            return next(iter(self._kinds))
        is_null = self._config.bad_records is BadRecords.NULL
        decoded = [part.part for part in self._config.parts if part.part in self._columns]
        types = {**FIELDS, **dict.fromkeys(decoded, pa.null())}
        errors = [(error_column(part), ERROR_TYPE) for part in decoded if is_null]
        return pa.schema([*((name, types[name]) for name in self._columns), *errors])

    def decoded(self, chunk: Chunk) -> tuple[pa.RecordBatch, BadRecordError | None]:
        """Return the records, and the error of the bad record after them, or None.

        Raises `NotReadyYetError` while a lookup runs, or until the bad records are in the topic of
        dead letters: call again with the same chunk. Raises the error of a failed lookup, or of
        letters, too. The next call asks, or writes, again.
        """
        if self._letters is not None:
            self._letters.check(chunk.topic_partition.topic)
            written = self._letters.written(chunk)
            if written is not None:
                return written, None
        records = self._records_of(chunk.topic_partition.topic)
        if monotonic() >= self._ask_again_at_seconds:
            self._ask_again_at_seconds = monotonic() + ASK_AGAIN_SECONDS
            for topic_records in self._records.values():
                topic_records.ask_again()
        decoded = records.decoded(chunk)
        if decoded.failure is not None:
            records.ask_again()
        if decoded.letters is not None and self._letters is not None:
            self._letters.write(chunk, decoded.batch, decoded.letters)
        return decoded.batch, decoded.failure

    def _records_of(self, topic: str) -> TypedRecords:
        name = topic if self._is_by_topic else _ALL_TOPICS
        if name not in self._records:
            self._keep(name, self._plans.get(name))
        return self._records[name]

    def _plan(self, topic: str) -> TypedColumns:
        topics = [topic] if topic else []
        return plan_columns(
            self._config, self._columns, lambda: topics, TIME, client=self._registry
        )

    def _keep(self, name: str, typed: TypedColumns) -> None:
        sources = {
            part: columns.source(self._schemas if columns.registry else None)
            for part, columns in typed.parts.items()
        }
        self._records[name] = TypedRecords(typed, sources)
        self._kinds.add(typed.schema)


class _Lookups(Generic[K, V]):
    """Lookups in other threads, by the key that is looked up."""

    def __init__(self, background: Background, question: Callable[[K], V]) -> None:
        self._background, self._question = background, question
        self._under_way: dict[K, Future[V]] = {}

    def get(self, key: K) -> V:
        """Return the answer, once. Without one, ask and raise `NotReadyYetError`.

        Raises the error of a failed question.
        """
        lookup = self._under_way.get(key)
        if lookup is None:
            self._under_way[key] = self._background.ask(partial(self._question, key))
            raise NotReadyYetError
        if not lookup.done():
            raise NotReadyYetError
        del self._under_way[key]
        return lookup.result()


class _Schemas:
    """`SchemaSource` that does not wait."""

    def __init__(self, background: Background, registry: RegistryClient | GlueClient) -> None:
        self._registry = registry
        self._lookups = _Lookups(background, self._found)

    def schema(self, id: SchemaId) -> SchemaText:
        """Return the schema, as in `SchemaSource`. Raises `NotReadyYetError`, too."""
        return self._lookups.get(id)

    def _found(self, id: SchemaId) -> SchemaText:
        """Fetch the schema in another thread, and build its Protobuf descriptors there, too."""
        schema = self._registry.schema(id)
        if schema.type is SchemaType.PROTOBUF:
            with suppress(SchemaError):  # The reader of its rows raises it again.
                descriptors_of(schema)
        return schema
