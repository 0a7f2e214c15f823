"""Settings of Kafka's clients that are not settings here, each with the reason.

Those without effect are for a consumer as for a Spark source; what Spark has of its own is in
`spark/without_effect.py`. https://kafka.apache.org/documentation/#consumerconfigs
"""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.client import SECURITY_WITHOUT_EFFECT
from spark_kafka_source.errors import ConfigurationError

_PREFIX = "kafka."


def by_option(names_by_reason: Mapping[str, str]) -> dict[str, str]:
    """The reason by each option, of Kafka's names with spaces between them by reason."""
    return {
        f"{_PREFIX}{name}": reason
        for reason, names in names_by_reason.items()
        for name in names.split()
    }


WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    SECURITY_WITHOUT_EFFECT
    | by_option(
        {
            "topics are never created by reading": "allow.auto.create.topics",
            "share groups are not read": "share.acknowledgement.mode share.acquire.mode",
            "all addresses of a host are tried in turn": "client.dns.lookup",
            "the pauses are those of 'kafka.retry.backoff.ms' and 'kafka.retry.backoff.max.ms'": """
                reconnect.backoff.max.ms reconnect.backoff.ms
                """,
            "'kafka.socket.connection.setup.timeout.ms' does not grow here": """
                socket.connection.setup.timeout.max.ms
                """,
            "'kafka.bootstrap.servers' are asked again whenever the known brokers fail": """
                metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
                """,
            "Java classes cannot be run here": "config.providers",
            "it is internal to Kafka's Java client": """
                internal.throw.on.fetch.stable.offset.unsupported
                """,
            "it is a producer's, and this only reads": """
                acks batch.size buffer.memory compression.gzip.level compression.lz4.level
                compression.type compression.zstd.level delivery.timeout.ms enable.idempotence
                key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
                max.request.size metadata.max.idle.ms partitioner.adaptive.partitioning.enable
                partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
                retries transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
                value.serializer
                """,
        }
    )
)
"""Why a setting of Kafka's clients does nothing, by the name of its option."""

OF_A_CONSUMER: Mapping[str, str] = MappingProxyType(
    {
        **WITHOUT_EFFECT,
        **by_option(
            {
                "`metrics()` has the figures, of two windows of 30 s": """
                    metric.reporters metrics.num.samples metrics.recording.level
                    metrics.sample.window.ms
                    """,
                "brokers are sent no figures": "enable.metrics.push",
            }
        ),
    }
)
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

MEANT_BY_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "kafka.metadata.broker.list": "kafka.bootstrap.servers",
        "kafka.broker.list": "kafka.bootstrap.servers",
    }
)
"""Settings by what other clients call them, where no likeness of the names leads there."""

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
        "kafka.allow.auto.create.topics": "false",
        "kafka.client.dns.lookup": "use_all_dns_ips",
        "kafka.config.providers": "",
        "kafka.enable.metrics.push": "false",
        "kafka.interceptor.classes": "",
        "kafka.metadata.recovery.strategy": "rebootstrap",
        "kafka.metric.reporters": "",
        "kafka.metrics.num.samples": "2",
        "kafka.metrics.sample.window.ms": "30000",
        "kafka.share.acknowledgement.mode": "implicit",
    }
)
"""The value of a setting with which nothing is left undone, so that nothing need be said."""


def reason_without_effect(option: str, value: str) -> str | None:
    """Why a consumer does nothing about what it is given; "" where nothing is left undone.

    None for what is no setting of Kafka's. Raises `ConfigurationError` for what is `REFUSED`.
    """
    if DONE_ANYWAY.get(option) == value.strip().lower():
        return ""
    if option in REFUSED:
        raise ConfigurationError(option, "is not supported", REFUSED[option])
    return OF_A_CONSUMER.get(option)
