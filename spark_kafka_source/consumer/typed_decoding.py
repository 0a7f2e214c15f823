"""How a consumer makes typed record batches: schemas are asked for while it does other things."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar
from uuid import UUID

import pyarrow as pa

from spark_kafka_source.client import Lookup, Lookups
from spark_kafka_source.consumer.unread import NotKnownYetError
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
from spark_kafka_source.values.protobuf.reader import descriptors_of

ASK_AGAIN_SECONDS = 60.0
"""Ids that the registry did not have are asked for again so much later."""

_ALL_TOPICS = ""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TypedDecoding:
    """Makes record batches of chunks; a topic's schema is the one that it had when first read.

    Nothing in it waits. Used by the thread of a consumer.
    """

    def __init__(self, config: TypedConfig, columns: tuple[str, ...], lookups: Lookups) -> None:
        """Raises `ConfigurationError` for a schema that is given and cannot be used."""
        self._config, self._columns, self._lookups = config, columns, lookups
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
        """Give up what is not answered."""
        if self._registry is not None:
            self._registry.end()
        self._lookups.close()

    @property
    def skipped(self) -> int:
        """How many records were left out because they are bad."""
        return sum(each.skipped for each in self._records.values())

    @property
    def schema(self) -> pa.Schema:
        """Of a table without rows: a type that is not known, or is several, is null."""
        if len(self._kinds) == 1:
            return next(iter(self._kinds))
        is_null = self._config.bad_records is BadRecords.NULL
        decoded = [each.part for each in self._config.parts if each.part in self._columns]
        types = {**FIELDS, **dict.fromkeys(decoded, pa.null())}
        errors = [(error_column(each), ERROR_TYPE) for each in decoded if is_null]
        return pa.schema([*((name, types[name]) for name in self._columns), *errors])

    def decoded(self, chunk: Chunk) -> tuple[pa.RecordBatch, BadRecordError | None]:
        """Return the records, and what is wrong with the one after them, if anything.

        Raises `NotKnownYetError`: then it is to be called again with the same chunk. Raises what
        kept a schema from being known; the next call asks again.
        """
        records = self._records_of(chunk.topic_partition.topic)
        if monotonic() >= self._ask_again_at_seconds:
            self._ask_again_at_seconds = monotonic() + ASK_AGAIN_SECONDS
            for each in self._records.values():
                each.ask_again()
        batch, failure = records.before_failure(chunk)
        if failure is not None:
            records.ask_again()
        return batch, failure

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
    """Answers to what is asked in other threads."""

    def __init__(self, lookups: Lookups, question: Callable[[K], V]) -> None:
        self._lookups, self._question = lookups, question
        self._under_way: dict[K, Lookup[V]] = {}

    def get(self, key: K) -> V:
        """Return the answer, once; or ask, and raise `NotKnownYetError`. Raises what went wrong."""
        lookup = self._under_way.get(key)
        if lookup is None:
            question = partial(self._asked, key)
            self._under_way[key] = self._lookups.ask(question)
            raise NotKnownYetError
        if not lookup.is_done:
            raise NotKnownYetError
        del self._under_way[key]
        return lookup.result()

    def _asked(self, key: K, _: Any) -> V:
        """The registry is no broker: the client is not needed."""
        return self._question(key)


class _Schemas:
    """A `SchemaSource` that does not wait."""

    def __init__(self, lookups: Lookups, registry: RegistryClient) -> None:
        self._registry = registry
        self._answers = _Answers(lookups, self._found)

    def schema(self, id: int | UUID) -> SchemaText:
        """See `SchemaSource`; raises `NotKnownYetError`, too."""
        return self._answers.get(id)

    def _found(self, id: int | UUID) -> SchemaText:
        """In another thread; there also what makes descriptors of the text, and keeps them."""
        found = self._registry.schema(id)
        if found.type is SchemaType.PROTOBUF:
            with suppress(SchemaError):  # Who reads its rows will say so.
                descriptors_of(found)
        return found
