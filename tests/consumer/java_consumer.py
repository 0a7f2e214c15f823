"""Kafka's Java consumer (4.3.1), method by method and setting by setting, beside ours: the data.

`test_java_consumer.py` holds it against Kafka's own classes and ours; `python -m
tests.consumer.java_table` writes the README's tables of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from spark_kafka_source.consumer.without_effect import DONE_ANYWAY, OF_A_CONSUMER, REFUSED
from spark_kafka_source.net.security import INSTEAD


class Verdict(StrEnum):
    """What became of it."""

    HERE = "here"
    BETTER = "here and better"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Method:
    """`ours` is a method with its parameters, or an attribute; `why` says what is different."""

    verdict: Verdict
    ours: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """`default` is ours where it is not Java's."""

    verdict: Verdict
    why: str = ""
    default: str | None = None


def _here(ours: str, why: str = "") -> Method:
    return Method(Verdict.HERE, ours, why)


def _better(ours: str, why: str) -> Method:
    return Method(Verdict.BETTER, ours, why)


def _left_out(why: str) -> Method:
    return Method(Verdict.LEFT_OUT, why=why)


_NO_PUSH = "brokers are sent no figures (KIP-714)"
_BINARY_LENGTH = "`pyarrow.compute.binary_length` of the column"

METHODS: Mapping[str, Mapping[str, Method]] = {
    "Consumer": {
        "assign": _here("assign(topic_partitions)"),
        "assignment": _here("assignment()"),
        "beginningOffsets": _here("beginning_offsets(topic_partitions, timeout_ms)"),
        "clientInstanceId": _left_out(_NO_PUSH),
        "close": _here("close(timeout_ms)", "who is to stay in the group is a static member"),
        "commitAsync": _better(
            "commit_async(offsets, callback)",
            "tried again where that may help, and none overtakes another; Java's are sent once",
        ),
        "commitSync": _here("commit(offsets, timeout_ms)"),
        "committed": _here("committed(topic_partitions, timeout_ms)"),
        "currentLag": _here("current_lag(topic_partition)"),
        "endOffsets": _here("end_offsets(topic_partitions, timeout_ms)"),
        "enforceRebalance": _here("enforce_rebalance(reason)"),
        "groupMetadata": _here("group_metadata()", "None outside of a generation"),
        "listTopics": _here(
            "list_topics(timeout_ms)", "with leaders and replicas, not which are in sync"
        ),
        "metrics": _here(
            "metrics()",
            "of fetches, records, lags, commits, polls and the group; no others, and no reporters",
        ),
        "offsetsForTimes": _here("offsets_for_times(timestamps_ms, timeout_ms)"),
        "partitionsFor": _better(
            "partitions_for(topic, timeout_ms)",
            "an unknown topic is an error, and is not created by asking",
        ),
        "pause": _here("pause(topic_partitions)"),
        "paused": _here("paused()"),
        "poll": _better(
            "poll(timeout_ms)", "`to_arrow()` makes no object of a record; iterating does"
        ),
        "position": _here("position(topic_partition, timeout_ms)"),
        "registerMetricForSubscription": _left_out(_NO_PUSH),
        "resume": _here("resume(topic_partitions)"),
        "seek": _here("seek(topic_partition, offset, leader_epoch)"),
        "seekToBeginning": _here("seek_to_beginning(topic_partitions)"),
        "seekToEnd": _here("seek_to_end(topic_partitions)"),
        "subscribe": _here(
            "subscribe(topics, pattern, listener, server_pattern)",
            "`pattern` is Python's; `server_pattern` is Java's `SubscriptionPattern`",
        ),
        "subscription": _here("subscription()"),
        "unregisterMetricFromSubscription": _left_out(_NO_PUSH),
        "unsubscribe": _here("unsubscribe()"),
        "wakeup": _here("wakeup()", "of all that waits but `close` and `unsubscribe`"),
    },
    "ConsumerRecords": {
        "count": _here("__len__()"),
        "empty": _left_out("polls make them"),
        "isEmpty": _here("__len__()"),
        "iterator": _here("__iter__()"),
        "nextOffsets": _here("next_offsets"),
        "partitions": _here("partitions"),
        "records": _here("of(where)", "`where` is a partition or a topic"),
    },
    "ConsumerRecord": {
        "deliveryCount": _left_out("it is a share group's"),
        "headers": _here("headers"),
        "key": _here("key"),
        "leaderEpoch": _left_out("`next_offsets` has that of the last record"),
        "offset": _here("offset"),
        "partition": _here("partition"),
        "serializedKeySize": _left_out(_BINARY_LENGTH),
        "serializedValueSize": _left_out(_BINARY_LENGTH),
        "timestamp": _here("timestamp_ms"),
        "timestampType": _here("timestamp_type"),
        "topic": _here("topic"),
        "value": _here("value"),
    },
    "ConsumerRebalanceListener": {
        "onPartitionsAssigned": _here("on_partitions_assigned(partitions)"),
        "onPartitionsLost": _here("on_partitions_lost(partitions)"),
        "onPartitionsRevoked": _here("on_partitions_revoked(partitions)"),
    },
    "OffsetAndMetadata": {
        "leaderEpoch": _here("leader_epoch"),
        "metadata": _here("metadata"),
        "offset": _here("offset"),
    },
    "OffsetAndTimestamp": {
        "leaderEpoch": _here("leader_epoch"),
        "offset": _here("offset"),
        "timestamp": _here("timestamp_ms"),
    },
    "ConsumerGroupMetadata": {
        "generationId": _here("generation_id"),
        "groupId": _here("group_id"),
        "groupInstanceId": _here("group_instance_id"),
        "memberId": _here("member_id"),
    },
}
"""By Java's class and the name of the method, whatever its overloads."""

_WITH_JAVAS_DEFAULT = """
    auto.commit.interval.ms auto.offset.reset bootstrap.servers check.crcs client.rack
    connections.max.idle.ms default.api.timeout.ms enable.auto.commit exclude.internal.topics
    fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
    group.remote.assignor heartbeat.interval.ms isolation.level max.partition.fetch.bytes
    max.poll.interval.ms metadata.max.age.ms partition.assignment.strategy request.timeout.ms
    retry.backoff.max.ms retry.backoff.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
    security.protocol session.timeout.ms socket.connection.setup.timeout.ms ssl.cipher.suites
    ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.key.password
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.protocol ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    """
_JAVA_CLASSES = (
    "Kafka's own classes and Amazon's say which mechanism it is; for others use `token_provider`"
)
_HERE = {
    "client.id": Setting(
        Verdict.HERE,
        "`spark-kafka-source`, the group and a number by default",
        "spark-kafka-source",
    ),
    "max.poll.records": Setting(
        Verdict.HERE, "10,000 by default, not 500: they are no objects", "10000"
    ),
    **dict.fromkeys(
        ("receive.buffer.bytes", "send.buffer.bytes"),
        Setting(Verdict.HERE, "-1 by default: as large as the system makes them", "-1"),
    ),
    **dict.fromkeys(
        ("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
        Setting(Verdict.BETTER, "10 s by default; Java waits for ever", "10000"),
    ),
    "sasl.mechanism": Setting(
        Verdict.BETTER, "none by default: where the other settings mean only one, that one", ""
    ),
    "sasl.kerberos.service.name": Setting(
        Verdict.BETTER, "`kafka` by default, which Java wants to be told", "kafka"
    ),
    "sasl.jaas.config": Setting(Verdict.BETTER, "or `sasl_username` and `sasl_password`"),
    **dict.fromkeys(
        ("ssl.keystore.type", "ssl.truststore.type"),
        Setting(
            Verdict.HERE,
            "seen by the content: PEM, PKCS12; JKS is refused with the command that converts it",
            "",
        ),
    ),
    **dict.fromkeys(
        (
            "sasl.client.callback.handler.class",
            "sasl.login.callback.handler.class",
            "sasl.login.class",
        ),
        Setting(Verdict.HERE, _JAVA_CLASSES),
    ),
    "sasl.oauthbearer.jwt.retriever.class": Setting(Verdict.HERE, _JAVA_CLASSES, ""),
}
_REFUSED_OF_SECURITY = """
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.jwt.validator.class
    ssl.engine.factory.class
    """


def _security_instead(name: str) -> str:
    why = next(why for begin, why in INSTEAD.items() if f"kafka.{name}".startswith(begin))
    return why[0].lower() + why[1:]


def _as_with(option: str) -> str:
    done = DONE_ANYWAY.get(option)
    return f", as with `{done}`" if done else ""


_OF_A_PRODUCER = "it is a producer's, and this only reads"

CONFIGURATION: Mapping[str, Setting] = {
    **dict.fromkeys(_WITH_JAVAS_DEFAULT.split(), Setting(Verdict.HERE)),
    **_HERE,
    **{
        option.removeprefix("kafka."): Setting(Verdict.LEFT_OUT, why + _as_with(option))
        for option, why in (*OF_A_CONSUMER.items(), *REFUSED.items())
        if why != _OF_A_PRODUCER
    },
    **{
        name: Setting(Verdict.LEFT_OUT, _security_instead(name))
        for name in _REFUSED_OF_SECURITY.split()
    },
    "key.deserializer": Setting(Verdict.HERE, "a function of bytes, or None: they stay bytes"),
    "value.deserializer": Setting(Verdict.HERE, "a function of bytes, or None: they stay bytes"),
}
"""By Java's name. Why something is left out is what a user is told who gives it."""
