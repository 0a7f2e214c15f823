"""Encoding of a DataFrame's typed columns into the bytes that the sink would write."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_kafka_source.errors import ConfigurationError, listed
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.options.unknown import nearest
from spark_kafka_source.spark.sink.columns import MissingColumnError, arrow_type
from spark_kafka_source.typed import WRITE_OPTIONS, TypedWrite, TypedWriteConfig, plan_writes

_TOPIC = "topic"
_KNOWN = {name.lower(): name for name in (*WRITE_OPTIONS, _TOPIC)}


def encode(frame: DataFrame, options: Mapping[str, object]) -> DataFrame:
    """Return the DataFrame with `key` and `value` as bytes, and all other columns unchanged.

        encode(orders, {"topic": "orders", "value.format": "avro", "schema.registry.url": url})

    `options` are the sink's options for typed values, and `topic`, which names the subject. This
    call looks up or registers the schemas, once. Tasks need no registry. Raises
    `ConfigurationError` for an option that cannot be used, `MissingColumnError`, and the
    errors of the registry. A row that does not fit its schema fails its task with
    `UnencodableRowError`.
    """
    texts = {name.lower(): _text(value) for name, value in options.items()}
    for name in texts.keys() - _KNOWN.keys():
        raise _unknown(name)
    config = TypedWriteConfig.from_settings(Settings(texts))
    if not config.parts:
        raise ConfigurationError("value.format", "is missing", "Give avro, json or protobuf")
    kinds = {}
    for part in config.parts:
        if part.part not in frame.columns:
            found = f"There is no column {part.part!r}, which '{part.option('format')}' is for"
            raise MissingColumnError(f"{found}: there are {listed(frame.columns)}")
        kinds[part.part] = arrow_type(frame.schema[part.part].dataType)
    planned = plan_writes(config, kinds, texts.get(_TOPIC))
    fields = [
        StructField(field.name, BinaryType()) if field.name in planned else field
        for field in frame.schema.fields
    ]
    return frame.mapInArrow(_encoding(planned), StructType(fields))


def _encoding(
    planned: Mapping[str, TypedWrite],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def encoded(batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, write in planned.items():
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, name, write.encode(batch.column(place)))
        return batch

    return lambda batches: map(encoded, batches)


def _text(value: object) -> str:
    """Return an option's text as `DataFrameWriter.option` does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unknown(name: str) -> ConfigurationError:
    near = nearest(name, _KNOWN.values())
    expected = f"Did you mean '{near}'?" if near else "It takes only options for typed values"
    return ConfigurationError(name, "is no option of 'encode'", expected)
