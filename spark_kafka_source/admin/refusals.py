"""The errors of refused changes to topics and configurations, with advice."""

import contextlib
from collections.abc import Iterable

from spark_kafka_source.admin.changes import Verdict
from spark_kafka_source.admin.new_topics import NewTopic
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.client.configs import ConfigResourceType
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import BrokerError, KafkaError, TopicNotFoundError
from spark_kafka_source.net import Deadline
from spark_kafka_source.options.unknown import nearest
from spark_kafka_source.secret import REDACTED, Secret

_DENIALS = {"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"}
# Advice is worth a look at the brokers, and no long wait.
LOOK_MS = 5_000

TOPIC_CONFIGS = frozenset(
    {
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "errors.deadletterqueue.group.enable",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.decompressed.message.bytes",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)
"""The configurations of topics, for advice: https://kafka.apache.org/documentation/#topicconfigs."""


def refused(
    request: str, verdict: Verdict, advice: str | None = None, secrets: Iterable[Secret] = ()
) -> BrokerError:
    """Return the error of a refusal: the broker's own text, without the secrets, and advice."""
    message = verdict.message or ""
    for secret in secrets:
        if secret:
            message = message.replace(secret.reveal(), REDACTED)
    return refusal(verdict.error, f"{request} of {verdict.resource}", message, advice=advice)


def needed_right(verdict: Verdict, right: str) -> str | None:
    """Return the right that the user needs after a denial; None for another error."""
    if verdict.error.name not in _DENIALS:
        return None
    is_topic = verdict.resource.type is ConfigResourceType.TOPIC
    where = str(verdict.resource) if is_topic else "the cluster"
    if right == "CREATE":
        where += ", or on the cluster"
    return f"the user needs {right} on {where}: have it granted"


async def about_creation(client: KafkaClient, topic: NewTopic, verdict: Verdict) -> str | None:
    """Return the advice after a refusal to create a topic."""
    error = verdict.error.name
    if error == "INVALID_REPLICATION_FACTOR":
        with contextlib.suppress(KafkaError):
            await client.topics([], Deadline.after_ms(LOOK_MS))
        brokers = len(client.cluster.brokers)
        if 0 < brokers < (topic.replication_factor or 0):
            return f"Give at most the number of brokers, which is {brokers}"
        return None if topic.replication_factor else _give("replication_factor")
    if error == "INVALID_PARTITIONS" and topic.partitions is None:
        return _give("partitions")
    if error == "INVALID_CONFIG":
        return misspelt(topic.configs, TOPIC_CONFIGS)
    return needed_right(verdict, "CREATE")


def _give(option: str) -> str:
    return f"Give '{option}': only brokers from Kafka 2.4 on have a default, and theirs may not do"


def misspelt(names: Iterable[str], known: Iterable[str]) -> str | None:
    """Return what misspelt names of configurations may mean; None if there are none."""
    known = frozenset(known)
    near = {name: nearest(name, known) for name in names if name not in known}
    meanings = [f"{meant!r} in place of {name!r}" for name, meant in near.items() if meant]
    return f"Did you mean {' and '.join(meanings)}?" if meanings else None


async def no_topic(client: KafkaClient, name: str) -> TopicNotFoundError:
    """Return the error of a missing topic, with a topic that may be meant, if the user sees one."""
    with contextlib.suppress(KafkaError):
        topics = await client.topics(None, Deadline.after_ms(LOOK_MS))
        return TopicNotFoundError(name, nearest(name, {topic.name for topic in topics} - {name}))
    return TopicNotFoundError(name)


async def partition_count(client: KafkaClient, name: str) -> int | None:
    """Return how many partitions a topic has, if a broker tells it now."""
    with contextlib.suppress(KafkaError):
        (topic,) = await client.topics([name], Deadline.after_ms(LOOK_MS))
        return len(topic.partitions) or None
    return None
