"""All methods and settings of Kafka's Java consumer (4.4.0), compared with ours."""

from collections.abc import Mapping

from spark_kafka_source.consumer.consumer_config import VOCABULARY, ConsumerConfig
from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.consumer.rebalance_listener import ConsumerRebalanceListener
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.groups import Member, OffsetAndMetadata
from tools.java_clients.rows import (
    ROOT,
    JavaClient,
    Method,
    Setting,
    Verdict,
    better,
    here,
    left_out,
)
from tools.java_clients.settings import (
    OF_ANY_CLIENT,
    ONLY_OWN,
    REPORTERS,
    as_javas,
    left_out_by,
)

_DESERIALIZER = "a function, an object, or the name of one of Kafka's; with None they stay bytes"
_BINARY_LENGTH = "`pyarrow.compute.binary_length` of the column"

_METHODS: Mapping[str, Mapping[str, Method]] = {
    "Consumer": {
        "assign": here("assign(topic_partitions)"),
        "assignment": here("assignment()"),
        "beginningOffsets": here("beginning_offsets(topic_partitions, timeout_ms)"),
        "clientInstanceId": here(
            "client_instance_id(timeout_ms)",
            "an error says why there is none, where Java returns null",
        ),
        "close": here("close(timeout_ms)", "a static member stays in the group"),
        "commitAsync": better(
            "commit_async(offsets, callback)",
            "a commit is tried again where that helps, and keeps its order; Java sends it once",
        ),
        "commitSync": here("commit(offsets, timeout_ms)"),
        "committed": here("committed(topic_partitions, timeout_ms)"),
        "currentLag": here("current_lag(topic_partition)"),
        "endOffsets": here("end_offsets(topic_partitions, timeout_ms)"),
        "enforceRebalance": here("enforce_rebalance(reason)"),
        "groupMetadata": here("group_metadata()", "None while the member has no generation"),
        "listTopics": here(
            "list_topics(timeout_ms)", "with leaders and replicas, without the in-sync ones"
        ),
        "metrics": here(
            "metrics()",
            "fetches, records, lags, commits, polls and the group; 0 where Java has NaN",
        ),
        "offsetsForTimes": here("offsets_for_times(timestamps_ms, timeout_ms)"),
        "partitionsFor": better(
            "partitions_for(topic, timeout_ms)",
            "an unknown topic is an error; the call does not create it",
        ),
        "pause": here("pause(topic_partitions)"),
        "paused": here("paused()"),
        "poll": better(
            "poll(timeout_ms)", "`to_arrow()` makes no object for a record; a loop over it does"
        ),
        "position": here("position(topic_partition, timeout_ms)"),
        "registerMetricForSubscription": left_out(ONLY_OWN),
        "resume": here("resume(topic_partitions)"),
        "seek": here("seek(topic_partition, offset, leader_epoch)"),
        "seekToBeginning": here("seek_to_beginning(topic_partitions)"),
        "seekToEnd": here("seek_to_end(topic_partitions)"),
        "subscribe": here(
            "subscribe(topics, pattern, listener, server_pattern)",
            "`pattern` is Python's; `server_pattern` is Java's `SubscriptionPattern`",
        ),
        "subscription": here("subscription()"),
        "unregisterMetricFromSubscription": left_out(ONLY_OWN),
        "unsubscribe": here("unsubscribe()"),
        "wakeup": here("wakeup()", "ends every wait except those of `close` and `unsubscribe`"),
    },
    "ConsumerRecords": {
        "count": here("__len__()"),
        "empty": left_out("only polls make them"),
        "isEmpty": here("__len__()"),
        "iterator": here("__iter__()"),
        "nextOffsets": here("next_offsets"),
        "partitions": here("partitions"),
        "records": here("of(where)", "`where` is a partition or a topic"),
    },
    "ConsumerRecord": {
        "deliveryCount": left_out("it belongs to share groups"),
        "headers": here("headers"),
        "key": here("key"),
        "leaderEpoch": left_out("`next_offsets` has the epoch of the last record"),
        "offset": here("offset"),
        "partition": here("partition"),
        "serializedKeySize": left_out(_BINARY_LENGTH),
        "serializedValueSize": left_out(_BINARY_LENGTH),
        "timestamp": here("timestamp_ms"),
        "timestampType": here("timestamp_type"),
        "topic": here("topic"),
        "value": here("value"),
    },
    "ConsumerRebalanceListener": {
        "onPartitionsAssigned": here("on_partitions_assigned(partitions)"),
        "onPartitionsLost": here("on_partitions_lost(partitions)"),
        "onPartitionsRevoked": here("on_partitions_revoked(partitions)"),
    },
    "OffsetAndMetadata": {
        "leaderEpoch": here("leader_epoch"),
        "metadata": here("metadata"),
        "offset": here("offset"),
    },
    "OffsetAndTimestamp": {
        "leaderEpoch": here("leader_epoch"),
        "offset": here("offset"),
        "timestamp": here("timestamp_ms"),
    },
    "ConsumerGroupMetadata": {
        "generationId": here("generation_id"),
        "groupId": here("group_id"),
        "groupInstanceId": here("group_instance_id"),
        "memberId": here("member_id"),
    },
}
"""By Java's class and method name. Overloads are one method."""

_WITH_JAVAS_DEFAULT = """
    auto.commit.interval.ms auto.offset.reset check.crcs client.rack default.api.timeout.ms
    enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
    group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    isolation.level max.partition.fetch.bytes max.poll.interval.ms partition.assignment.strategy
    session.timeout.ms
    """

_SETTINGS: Mapping[str, Setting] = {
    **OF_ANY_CLIENT,
    **as_javas(_WITH_JAVAS_DEFAULT),
    "allow.auto.create.topics": Setting(
        Verdict.BETTER, "a topic that is deleted while it is read is not created again"
    ),
    "client.id": Setting(
        Verdict.HERE,
        "`spark-kafka-source`, the group and a number by default",
        "spark-kafka-source",
    ),
    "max.poll.records": Setting(
        Verdict.HERE, "10,000 by default, not 500: records are no objects", "10000"
    ),
    "metric.reporters": Setting(Verdict.HERE, REPORTERS),
    **left_out_by(VOCABULARY),
    "key.deserializer": Setting(Verdict.HERE, _DESERIALIZER),
    "value.deserializer": Setting(Verdict.HERE, _DESERIALIZER),
}

CONSUMER = JavaClient(
    kind="consumer",
    main_class="Consumer",
    methods=_METHODS,
    settings=_SETTINGS,
    classes={
        "Consumer": KafkaConsumer,
        "ConsumerRecords": ConsumerRecords,
        "ConsumerRecord": ConsumerRecord,
        "ConsumerRebalanceListener": ConsumerRebalanceListener,
        "OffsetAndMetadata": OffsetAndMetadata,
        "OffsetAndTimestamp": OffsetAndTimestamp,
        "ConsumerGroupMetadata": Member,
    },
    read=ConsumerConfig.from_arguments,
    vocabulary=VOCABULARY,
    page=ROOT / "docs" / "contributors" / "measured" / "java-clients.md",
    arguments=frozenset({"key.deserializer", "metric.reporters", "value.deserializer"}),
    # Java has two overloads, for a partition and for a topic.
    one_for_two=frozenset({"records"}),
)
