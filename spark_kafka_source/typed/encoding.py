"""Encoding of a producer's keys and values, one by one or as columns. Schemas are cached."""

import json
from typing import Any

import pyarrow as pa

from spark_kafka_source.net import Deadline
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.registry import RegistryClient, SharedCache
from spark_kafka_source.typed.config import TypedWriteConfig
from spark_kafka_source.typed.format_config import Format
from spark_kafka_source.typed.reading import json_validation
from spark_kafka_source.typed.writing import TypedWrite, plan_writes
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.one_value import no_such_value

MOST_KEPT = 1_000
"""The most topics and column types whose encoders are kept."""

_WAIT_MS = 60_000


class TypedEncoding:
    """Encoder of typed keys and values, for several threads.

    The first use of a topic, or of a column type, looks up or registers its schema. That call waits
    for the registry, and raises the errors of `plan_writes`.
    """

    def __init__(self, config: TypedWriteConfig) -> None:
        self._config = config
        self._registry = None if config.registry is None else RegistryClient(config.registry)
        self._writes: SharedCache[tuple[str, str | None, pa.DataType | None], TypedWrite | None]
        self._writes = SharedCache(MOST_KEPT)
        self.parts = tuple(part_config.part for part_config in config.parts)
        """The encoded parts, of `key` and `value`."""

    def close(self) -> None:
        """Close the connection to the registry. A thread that waits for it gets a `ClosedError`."""
        if self._registry is not None:
            self._registry.end()

    def of_topic(self, part: str, topic: str) -> TypedWrite | None:
        """Return the encoder for values without a type, or None for JSON without a schema."""
        return self._write(part, topic, None)

    def one(self, part: str, topic: str, value: Any) -> bytes | None:
        """Encode one value. A dict stands for a struct. None, a tombstone, stays None.

        Raises `UnencodableRowError` with the path of a value that the schema has no place for.
        """
        if value is None:
            return None
        write = self.of_topic(part, topic)
        return _as_json(value) if write is None else write.one(value)

    def table(self, topic: str | None, columns: pa.Table | pa.RecordBatch) -> pa.Table:
        """Return the columns with `key` and `value` encoded to bytes.

        Raises `ColumnTypeError`, and `UnencodableRowError` with rows counted in the whole table.
        """
        batches = columns.to_batches() if isinstance(columns, pa.Table) else [columns]
        encoded, first_row = [], 0
        for batch in batches:
            try:
                encoded.append(self._batch(topic, batch))
            except UnencodableRowError as error:
                rows = [first_row + row for row in error.rows]
                raise type(error)(rows, error.reason) from None
            first_row += batch.num_rows
        if not encoded:
            return self._batch(topic, pa.RecordBatch.from_pylist([], columns.schema))
        return pa.Table.from_batches(encoded)

    def _batch(self, topic: str | None, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = {name: batch.column(place) for place, name in enumerate(batch.schema.names)}
        for part in self.parts:
            column = columns.get(part)
            # A column of the null type holds only tombstones.
            if column is not None and not pa.types.is_null(column.type):
                write = self._write(part, topic, column.type)
                columns[part] = column if write is None else write.encode(column)
        return pa.RecordBatch.from_pydict(columns)

    def _write(self, part: str, topic: str | None, kind: pa.DataType | None) -> TypedWrite | None:
        """Return the encoder, or None for JSON without any schema."""
        return self._writes.get(
            (part, topic, kind),
            lambda: self._planned(part, topic, kind),
            Deadline.after_ms(_WAIT_MS),
        )

    def _planned(self, part: str, topic: str | None, kind: pa.DataType | None) -> TypedWrite | None:
        (config,) = (part_config for part_config in self._config.parts if part_config.part == part)
        if kind is None and config.format is Format.JSON and not config.schema:
            is_named = config.schema_subject or config.schema_id
            if not is_named and not config.is_framed(self._registry is not None):
                json_validation(config, None)
                return None
        return plan_writes(self._config, {part: kind}, topic, client=self._registry)[part]


def _as_json(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        _check_names(value, "")
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnencodableRowError([0], f"it is not JSON: {error}"[:200]) from error


def _check_names(value: Any, path: str) -> None:
    """Raise `UnencodableRowError` for a name that is no string: `json` would make it one.

    Then 1 and "1" would be the same name.
    """
    if isinstance(value, dict):
        for name, field in value.items():
            if not isinstance(name, str):
                no_such_value(f"{path}{{}}", name, pa.string())
            _check_names(field, below(path, name))
    elif isinstance(value, list | tuple):
        for element in value:
            _check_names(element, f"{path}[]")
