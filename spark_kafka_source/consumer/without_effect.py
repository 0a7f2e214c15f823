"""Kafka client settings that this consumer does not have, each with the reason.

The settings without effect are the same for a consumer and a Spark source. Spark's own are in
`spark/source/without_effect.py`. https://kafka.apache.org/documentation/#consumerconfigs
"""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.client import without_effect as of_clients
from spark_kafka_source.client.without_effect import FIGURES, OF_PRODUCERS, by_option

WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.WITHOUT_EFFECT,
        **OF_PRODUCERS,
        **by_option(
            {
                "share groups are not read": "share.acknowledgement.mode share.acquire.mode",
                "it is internal to Kafka's Java client": """
                    internal.throw.on.fetch.stable.offset.unsupported
                    """,
            }
        ),
    }
)
"""The reason why a Kafka client setting does nothing, by option name."""

OF_A_CONSUMER: Mapping[str, str] = MappingProxyType({**WITHOUT_EFFECT, **FIGURES})
"""`WITHOUT_EFFECT` and `FIGURES`, for a `KafkaConsumer`."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "kafka.key.deserializer": "Give `key_deserializer` a function of bytes, as `bytes.decode`",
        "kafka.value.deserializer": (
            "Give `value_deserializer` a function of bytes, as `bytes.decode`"
        ),
        "kafka.interceptor.classes": (
            "Java classes cannot be run here: look at the records of `poll`, and at commits in the"
            " callback of `commit_async`"
        ),
    }
)
"""Refused settings, each with its replacement."""

MEANT_BY_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.MEANT_BY_OTHERS,
        "kafka.fetch.error.backoff.ms": "kafka.retry.backoff.ms",
        "kafka.fetch.message.max.bytes": "kafka.max.partition.fetch.bytes",
        "kafka.metadata.fetch.timeout.ms": "kafka.default.api.timeout.ms",
        "kafka.queued.max.messages.kbytes": "kafka.fetch.max.bytes",
        "kafka.receive.message.max.bytes": "kafka.fetch.max.bytes",
    }
)
"""Settings by the names of other consumers, where a search by likeness misleads or finds nothing.
"""

INSTEAD: Mapping[str, str] = MappingProxyType(
    by_option(
        {
            "Give a `ConsumerRebalanceListener` as the argument `listener`": """
                consumer.rebalance.listener rebalance.callback.class rebalance.cb
                rebalance.listener
                """,
            "Give the topics to `subscribe`": "topic topics",
            "Give `timeout_ms` to `poll`, which returns no records if none come. A loop over the"
            " consumer itself has no end": "consumer.timeout.ms poll.timeout.ms",
            "A position moves when `poll` returns its records: set 'kafka.enable.auto.commit' to"
            " false, and `commit` the offsets after the records that you are done with": """
                enable.auto.offset.store offset.store.method
                """,
            "Compare `position` with `end_offsets`": "enable.partition.eof",
            "Give the callback to `commit_async`": """
                default.offset.commit.callback offset.commit.cb on.commit
                """,
            "It is a producer's": "message.timeout.ms",
        }
    )
)
"""Other clients' settings that are no settings here, each with its replacement."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.DONE_ANYWAY,
        "kafka.share.acknowledgement.mode": "implicit",
    }
)
"""Values of settings without effect that need no warning, because they hold here anyway."""
