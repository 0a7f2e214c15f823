"""Type of a topic's values or keys as DDL, from the schema registry or from its records."""

from collections.abc import Iterator, Mapping
from typing import Any

from spark_kafka_source.consumer.consumer_config import VOCABULARY
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.net import Deadline, TokenProvider
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import READ_OPTIONS, Format, FormatConfig, TypedConfig, plan_columns
from spark_kafka_source.values.ddl import to_ddl
from spark_kafka_source.values.json import infer

_POLL_MS = 500
_FRAMING = b"\0"
_FRAMING_BYTES = 5
# The consumer here joins no group and commits nothing.
_NOT_NEEDED = frozenset({"kafka.group.id", "kafka.group.instance.id", "kafka.enable.auto.commit"})


def infer_schema(
    topic: str,
    *,
    part: str = "value",
    records: int = 1_000,
    timeout_ms: int = 30_000,
    token_provider: TokenProvider | None = None,
    **configuration: object,
) -> str:
    """Return the columns of a topic's values as DDL, for `value_schema`.

        infer_schema("events", bootstrap_servers="localhost:9092")

    The settings are those of `KafkaConsumer`. With `value_format` and a schema registry, the
    result is the reader's schema, and no record is read. Without, the result is inferred from
    about `records` of the newest records, as JSON. `part` may be `key`. Raises
    `ConfigurationError`, `SchemaError` if there is no JSON object, and a consumer's errors.
    """
    with spelt(VOCABULARY.spelling(configuration)):
        settings = VOCABULARY.settings(configuration)
        format = FormatConfig.from_settings(settings, part)
        has_schema = format.schema or format.is_framed(settings.has("schema.registry.url"))
        if format.has_schema and (has_schema or format.format is not Format.JSON):
            typed = TypedConfig.from_settings(settings)
            columns = plan_columns(typed, (part,), lambda: [topic])
            return to_ddl(columns.parts[part].reader.arrow_type)
    typed_options = {name.lower() for name in READ_OPTIONS}
    plain: dict[str, Any] = {
        name: value
        for name, value in configuration.items()
        if VOCABULARY.option(name) not in typed_options | _NOT_NEEDED
    }
    with KafkaConsumer(
        columns=(part,), token_provider=token_provider, enable_auto_commit=False, **plain
    ) as consumer:
        newest = _newest(consumer, topic, records, Deadline.after_ms(timeout_ms))
        return to_ddl(infer(newest, format.json))


def _newest(consumer: KafkaConsumer, topic: str, most: int, deadline: Deadline) -> Iterator[bytes]:
    """Yield the keys or values of about `most` records, the same number per partition."""
    partitions = consumer.partitions_for(topic)
    starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    share = -(-most // len(partitions))
    consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, max(starts[partition], ends[partition] - share))
    while _is_left(consumer, ends) and not deadline.expired:
        for batch in consumer.poll(_POLL_MS).to_batches():
            for data in batch.column(0).to_pylist():
                # A schema id begins with a byte that no text begins with.
                is_framed = data is not None and data.startswith(_FRAMING)
                if data is not None:
                    yield data[_FRAMING_BYTES:] if is_framed else data


def _is_left(consumer: KafkaConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    return any(consumer.position(partition) < end for partition, end in ends.items())
