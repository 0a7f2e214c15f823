"""Settings of Kafka's clients that are not settings of a producer here, each with the reason.

https://kafka.apache.org/documentation/#producerconfigs
"""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.client import without_effect as of_clients
from spark_kafka_source.client.without_effect import FIGURES, OF_CONSUMERS, by_option

WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.WITHOUT_EFFECT,
        **OF_CONSUMERS,
        **by_option(
            {
                "a topic is known as long as the producer is": "metadata.max.idle.ms",
                "with 'kafka.partitioner.adaptive.partitioning.enable' a slow partition gets fewer"
                " records": "partitioner.availability.timeout.ms",
            }
        ),
    }
)
"""Why a setting of Kafka's clients does nothing, by the name of its option."""

OF_A_PRODUCER: Mapping[str, str] = MappingProxyType({**WITHOUT_EFFECT, **FIGURES})
"""The same for a `KafkaProducer`, its figures included."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "kafka.key.serializer": "Give `key_serializer` a function, as `str.encode`",
        "kafka.value.serializer": "Give `value_serializer` a function, as `str.encode`",
        "kafka.interceptor.classes": (
            "Java classes cannot be run here: change what is given to `send`, and look at what"
            " became of it in `on_delivery`"
        ),
        "kafka.transaction.two.phase.commit.enable": (
            "Brokers keep it behind a switch for what is not stable (KIP-939): a transaction ends"
            " within 'kafka.transaction.timeout.ms'"
        ),
    }
)
"""What a producer may rely on, and what to use in its place here."""

MEANT_BY_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.MEANT_BY_OTHERS,
        "kafka.batch.num.messages": "kafka.batch.size",
        "kafka.compression.codec": "kafka.compression.type",
        "kafka.max.in.flight": "kafka.max.in.flight.requests.per.connection",
        "kafka.message.max.bytes": "kafka.max.request.size",
        "kafka.message.send.max.retries": "kafka.retries",
        "kafka.message.timeout.ms": "kafka.delivery.timeout.ms",
        "kafka.queue.buffering.max.kbytes": "kafka.buffer.memory",
        "kafka.queue.buffering.max.messages": "kafka.buffer.memory",
        "kafka.queue.buffering.max.ms": "kafka.linger.ms",
        "kafka.request.required.acks": "kafka.acks",
    }
)
"""Settings by what other clients call them, where no likeness of the names leads there."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.DONE_ANYWAY,
        "kafka.partitioner.availability.timeout.ms": "0",
        "kafka.transaction.two.phase.commit.enable": "false",
    }
)
"""The value of a setting with which nothing is left undone, so that nothing need be said."""
