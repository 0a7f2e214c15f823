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
                "a batch takes only the memory of its records": "buffer.memory.allocation.strategy",
                "a topic is known as long as the producer is": "metadata.max.idle.ms",
                "with 'kafka.partitioner.adaptive.partitioning.enable' a slow partition gets fewer"
                " records": "partitioner.availability.timeout.ms",
            }
        ),
    }
)
"""Settings of Kafka's clients without an effect here: the reason, by the name of the option."""

OF_A_PRODUCER: Mapping[str, str] = MappingProxyType({**WITHOUT_EFFECT, **FIGURES})
"""The same for a `KafkaProducer`, with the settings of its figures."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "kafka.key.serializer": "Give `key_serializer` a function, as `str.encode`",
        "kafka.value.serializer": "Give `value_serializer` a function, as `str.encode`",
        "kafka.interceptor.classes": (
            "Java classes cannot be run here: change records before `send`, and look at their"
            " outcome in `on_delivery`"
        ),
        "kafka.transaction.two.phase.commit.enable": (
            "Brokers have it only behind a switch for unstable features (KIP-939): a transaction"
            " ends within 'kafka.transaction.timeout.ms'"
        ),
    }
)
"""Settings that users may rely on, so they are refused: what to use here instead."""

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
"""Settings by the names of other clients, if the likeness of names does not lead to ours."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        **of_clients.DONE_ANYWAY,
        "kafka.buffer.memory.allocation.strategy": "incremental",
        "kafka.partitioner.availability.timeout.ms": "0",
        "kafka.transaction.two.phase.commit.enable": "false",
    }
)
"""The values of settings that ask for nothing beyond what is done anyway. They need no message."""
