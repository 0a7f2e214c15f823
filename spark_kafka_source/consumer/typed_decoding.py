"""Typed record batches of a consumer, with schema lookups in other threads."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Generic, TypeVar
from uuid import UUID

import pyarrow as pa

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.background import Background
from spark_kafka_source.consumer.letter_writes import LetterWrites
from spark_kafka_source.consumer.unread import NotKnownYetError
from spark_kafka_source.consumer.waiting import Waiting
from spark_kafka_source.records import Chunk
from spark_kafka_source.records.columns import FIELDS
from spark_kafka_source.registry import RegistryClient
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
"""The time until the consumer asks again for ids that the registry did not have."""

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
        self._lookups = lookups = Background(waiting.wakeup)
        topic = config.bad_records_topic
        self._letters = LetterWrites(client, topic, waiting) if topic else None
        self._registry = None if config.registry is None else RegistryClient(config.registry)
        self._plans = _Answers(lookups, self._plan)
        self._schemas = None if self._registry is None else _Schemas(lookups, self._registry)
        self._is_by_topic = any(each.is_by_topic for each in config.parts)
        self._records: dict[str, TypedRecords] = {}
        self._kinds: set[pa.Schema] = set()
        self._ask_again_at_seconds = 0.0
        if not any(each.has_schema and not each.schema for each in config.parts):
            self._keep(_ALL_TOPICS, self._plan(_ALL_TOPICS))

    def close(self) -> None:
        """Give up the lookups that have no answer."""
        if self._registry is not None:
            self._registry.end()
        if self._letters is not None:
            self._letters.close()
        self._lookups.close()

    @property
    def skipped(self) -> int:
        """The number of bad records that were left out."""
        return sum(each.skipped for each in self._records.values())

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
        decoded = [each.part for each in self._config.parts if each.part in self._columns]
        types = {**FIELDS, **dict.fromkeys(decoded, pa.null())}
        errors = [(error_column(each), ERROR_TYPE) for each in decoded if is_null]
        return pa.schema([*((name, types[name]) for name in self._columns), *errors])

    def decoded(self, chunk: Chunk) -> tuple[pa.RecordBatch, BadRecordError | None]:
        """Return the records, and the error of the bad record after them, or None.

        Raises `NotKnownYetError` while a lookup runs, or until the bad records are in the topic of
        dead letters: call again with the same chunk. Raises the error of a failed lookup, or of
        letters, too. The next call asks, or writes, again.
        """
        if self._letters is not None:
            self._letters.check(chunk.topic_partition.topic)
            written = self._letters.take(chunk)
            if written is not None:
                return written, None
        records = self._records_of(chunk.topic_partition.topic)
        if monotonic() >= self._ask_again_at_seconds:
            self._ask_again_at_seconds = monotonic() + ASK_AGAIN_SECONDS
            for each in self._records.values():
                each.ask_again()
        found = records.decoded(chunk)
        if found.failure is not None:
            records.ask_again()
        if found.letters is not None and self._letters is not None:
            self._letters.write(chunk, found.batch, found.letters)
        return found.batch, found.failure

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
            part: each.source(self._schemas if each.registry else None)
            for part, each in typed.parts.items()
        }
        self._records[name] = TypedRecords(typed, sources)
        self._kinds.add(typed.schema)


class _Answers(Generic[K, V]):
    """Answers to questions that run in other threads."""

    def __init__(self, lookups: Background, question: Callable[[K], V]) -> None:
        self._lookups, self._question = lookups, question
        self._under_way: dict[K, Future[V]] = {}

    def get(self, key: K) -> V:
        """Return the answer, once. Without one, ask and raise `NotKnownYetError`.

        Raises the error of a failed question.
        """
        lookup = self._under_way.get(key)
        if lookup is None:
            self._under_way[key] = self._lookups.ask(partial(self._question, key))
            raise NotKnownYetError
        if not lookup.done():
            raise NotKnownYetError
        del self._under_way[key]
        return lookup.result()


class _Schemas:
    """`SchemaSource` that does not wait."""

    def __init__(self, lookups: Background, registry: RegistryClient) -> None:
        self._registry = registry
        self._answers = _Answers(lookups, self._found)

    def schema(self, id: int | UUID) -> SchemaText:
        """Return the schema, as in `SchemaSource`. Raises `NotKnownYetError`, too."""
        return self._answers.get(id)

    def _found(self, id: int | UUID) -> SchemaText:
        """Fetch the schema in another thread, and build its Protobuf descriptors there, too."""
        found = self._registry.schema(id)
        if found.type is SchemaType.PROTOBUF:
            with suppress(SchemaError):  # The reader of its rows raises it again.
                descriptors_of(found)
        return found
