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

LISTENER: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        (
            "kafka.rebalance.callback.class",
            "kafka.rebalance.cb",
            "kafka.rebalance.listener",
            "kafka.consumer.rebalance.listener",
        ),
        "Give a `ConsumerRebalanceListener` as the argument `listener` of `subscribe`",
    )
)
"""Other clients' names of the rebalance listener, each with its replacement."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.DONE_ANYWAY,
        "kafka.share.acknowledgement.mode": "implicit",
    }
)
"""Values of settings without effect that need no warning, because they hold here anyway."""
