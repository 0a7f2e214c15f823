"""Options that do nothing here, and why: a warning, since a query may well work without them.

https://kafka.apache.org/documentation/#consumerconfigs
"""

import difflib
import logging
from collections.abc import Collection

from spark_kafka_source.client import SECURITY_WITHOUT_EFFECT

logger = logging.getLogger(__name__)

# Refused, not ignored, but for those with a reason.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")

_BY_REASON = {
    "the group has no members, as Spark plans the partitions": """
        group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
        max.poll.interval.ms partition.assignment.strategy session.timeout.ms
        """,
    "with 'kafka.group.id' each finished micro-batch is committed": "auto.commit.interval.ms",
    "records are not polled one by one; use 'maxOffsetsPerTrigger' or 'maxRecordsPerPartition'": (
        "max.poll.records"
    ),
    "topics are never created by reading": "allow.auto.create.topics",
    "'subscribePattern' leaves internal topics out": "exclude.internal.topics",
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
    "the figures are in Spark's progress and `LagListener`": """
        enable.metrics.push metric.reporters metrics.num.samples metrics.recording.level
        metrics.sample.window.ms
        """,
    "Java classes cannot be run here": "config.providers",
    "it is internal to Kafka's Java client": """
        internal.throw.on.fetch.stable.offset.unsupported
        """,
    "it is a producer's, and this only reads": """
        acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
        compression.zstd.level delivery.timeout.ms enable.idempotence key.serializer linger.ms
        max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
        partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
        partitioner.class partitioner.ignore.keys retries transaction.timeout.ms
        transaction.two.phase.commit.enable transactional.id value.serializer
        """,
}
REASONS = {
    f"kafka.{name}": reason for reason, names in _BY_REASON.items() for name in names.split()
} | SECURITY_WITHOUT_EFFECT
"""Why a setting of Kafka's clients does nothing here, by the name of its option."""


def warn_of_options_without_effect(given: Collection[str], read: Collection[str]) -> None:
    """Warns of what is `given`, in lower case, and not `read`: why, or what may have been meant."""
    nearest = {each.lower().removeprefix("kafka."): each for each in read}
    for name in sorted(set(given) - {each.lower() for each in read}):
        reason = REASONS.get(name)
        if reason is None and name.startswith(_SECURITY):
            continue
        close = difflib.get_close_matches(name.removeprefix("kafka."), nearest, n=1)
        hint = f"; did you mean '{nearest[close[0]]}'?" if close else ""
        logger.warning("Option '%s' has no effect here%s", name, f": {reason}" if reason else hint)
