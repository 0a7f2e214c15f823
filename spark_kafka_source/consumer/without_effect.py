"""Settings of Kafka's clients that are not settings of a consumer here, each with the reason.

Those without effect are for a consumer as for a Spark source; what Spark has of its own is in
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
                "topics are never created by reading": "allow.auto.create.topics",
                "share groups are not read": "share.acknowledgement.mode share.acquire.mode",
                "it is internal to Kafka's Java client": """
                    internal.throw.on.fetch.stable.offset.unsupported
                    """,
            }
        ),
    }
)
"""Why a setting of Kafka's clients does nothing, by the name of its option."""

OF_A_CONSUMER: Mapping[str, str] = MappingProxyType({**WITHOUT_EFFECT, **FIGURES})
"""The same for a `KafkaConsumer`, its figures included."""

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
"""What a consumer may rely on, and what to use in its place here."""

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
"""What others call the listener to rebalances, which is no setting of a `KafkaConsumer`."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.DONE_ANYWAY,
        "kafka.allow.auto.create.topics": "false",
        "kafka.share.acknowledgement.mode": "implicit",
    }
)
"""The value of a setting with which nothing is left undone, so that nothing need be said."""
