"""Settings of Kafka's clients that none of ours has, or one kind of them alone, with the reasons.

What one kind has of its own is in the `without_effect.py` of `consumer/`, `producer/` and of both
directions in `spark/`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.net import SECURITY_WITHOUT_EFFECT
from spark_kafka_source.settings import PREFIX


def by_option(names_by_reason: Mapping[str, str]) -> dict[str, str]:
    """The reason by each option, of Kafka's names with spaces between them by reason."""
    return {
        f"{PREFIX}{name}": reason
        for reason, names in names_by_reason.items()
        for name in names.split()
    }


WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    SECURITY_WITHOUT_EFFECT
    | by_option(
        {
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
        }
    )
)
"""Why a setting does nothing in any client, by the name of its option."""

FIGURES: Mapping[str, str] = MappingProxyType(
    by_option(
        {
            "`metrics()` has the figures, of two windows of 30 s": """
                metric.reporters metrics.num.samples metrics.recording.level
                metrics.sample.window.ms
                """,
            "brokers are sent no figures": "enable.metrics.push",
        }
    )
)
"""Why those of figures do nothing, for clients with `metrics()`."""

OF_PRODUCERS: Mapping[str, str] = MappingProxyType(
    by_option(
        {
            "it is a producer's, and this only reads": """
                acks batch.size buffer.memory compression.gzip.level compression.lz4.level
                compression.type compression.zstd.level delivery.timeout.ms enable.idempotence
                key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
                max.request.size metadata.max.idle.ms partitioner.adaptive.partitioning.enable
                partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
                retries transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
                value.serializer
                """
        }
    )
)
"""Kafka's that its producer has alone, with what a client that reads says of them."""

OF_CONSUMERS: Mapping[str, str] = MappingProxyType(
    by_option(
        {
            "it is a consumer's, and this only writes": """
                allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs
                client.rack enable.auto.commit exclude.internal.topics fetch.max.bytes
                fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
                group.remote.assignor heartbeat.interval.ms
                internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
                max.partition.fetch.bytes max.poll.interval.ms max.poll.records
                partition.assignment.strategy session.timeout.ms share.acknowledgement.mode
                share.acquire.mode value.deserializer
                """
        }
    )
)
"""Kafka's that its consumers have alone, with what a client that writes says of them."""

MEANT_BY_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "kafka.metadata.broker.list": "kafka.bootstrap.servers",
        "kafka.broker.list": "kafka.bootstrap.servers",
    }
)
"""Settings by what other clients call them, where no likeness of the names leads there."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        "kafka.client.dns.lookup": "use_all_dns_ips",
        "kafka.config.providers": "",
        "kafka.enable.metrics.push": "false",
        "kafka.interceptor.classes": "",
        "kafka.metadata.recovery.strategy": "rebootstrap",
        "kafka.metric.reporters": "",
        "kafka.metrics.num.samples": "2",
        "kafka.metrics.sample.window.ms": "30000",
    }
)
"""The value of a setting with which nothing is left undone, so that nothing need be said."""
