"""Settings of Kafka that have no effect in our clients, or only in one kind, with the reasons.

Each kind has more of them in a `without_effect.py`: in `consumer/`, in `producer/`, and in both
directions of `spark/`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.net import SECURITY_WITHOUT_EFFECT
from spark_kafka_source.settings import PREFIX


def by_option(names_by_reason: Mapping[str, str]) -> dict[str, str]:
    """Return the reason of each option. The argument has Kafka's names, split by spaces."""
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
            "'kafka.socket.connection.setup.timeout.ms' does not grow here": """
                socket.connection.setup.timeout.max.ms
                """,
            "'kafka.bootstrap.servers' are asked again whenever the known brokers fail": """
                metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
                """,
            "a name is resolved again at each try of a call, until the call's time is up": """
                bootstrap.resolve.timeout.ms
                """,
            "Java classes cannot be run here": "config.providers",
        }
    )
)
"""Reasons why settings do nothing in any client, by option."""

FIGURES: Mapping[str, str] = MappingProxyType(
    by_option(
        {
            "all figures are recorded": "metrics.recording.level",
        }
    )
)
"""Reasons why the settings of metrics do nothing, for clients with `metrics()`."""

OF_PRODUCERS: Mapping[str, str] = MappingProxyType(
    by_option(
        {
            "it is a producer's, and this only reads": """
                acks batch.size buffer.memory buffer.memory.allocation.strategy
                compression.gzip.level compression.lz4.level compression.type
                compression.zstd.level delivery.timeout.ms enable.idempotence
                key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
                max.request.size metadata.max.idle.ms partitioner.adaptive.partitioning.enable
                partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
                partitioner.rack.aware retries transaction.timeout.ms
                transaction.two.phase.commit.enable transactional.id value.serializer
                """
        }
    )
)
"""Settings that only Kafka's producer has, with the reason that a reading client gives."""

OF_CONSUMERS: Mapping[str, str] = MappingProxyType(
    by_option(
        {
            "it is a consumer's, and this only writes": """
                allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs
                enable.auto.commit exclude.internal.topics fetch.max.bytes
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
"""Settings that only Kafka's consumers have, with the reason that a writing client gives."""

MEANT_BY_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "kafka.metadata.broker.list": "kafka.bootstrap.servers",
        "kafka.broker.list": "kafka.bootstrap.servers",
        "kafka.socket.receive.buffer.bytes": "kafka.receive.buffer.bytes",
        "kafka.socket.send.buffer.bytes": "kafka.send.buffer.bytes",
        "kafka.socket.timeout.ms": "kafka.request.timeout.ms",
        "kafka.topic.metadata.refresh.interval.ms": "kafka.metadata.max.age.ms",
    }
)
"""Settings by the names of other clients, where a search by likeness misleads or finds nothing."""

DONE_ANYWAY: Mapping[str, str] = MappingProxyType(
    {
        "kafka.client.dns.lookup": "use_all_dns_ips",
        "kafka.config.providers": "",
        "kafka.interceptor.classes": "",
        "kafka.metadata.recovery.strategy": "rebootstrap",
    }
)
"""The value of each setting that our clients fulfil anyway, so that it needs no warning."""
