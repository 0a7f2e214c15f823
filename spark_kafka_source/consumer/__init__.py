"""Kafka consumer on `fetch` and `groups`: subscription, commits, records."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.consumer.typed_decoding import TypedDecoding

__all__ = ["TypedDecoding"]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "typed_decoding": "TypedDecoding",
        },
    )
