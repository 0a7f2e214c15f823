"""The command `topics`: all topics, or their partitions."""

import argparse

from spark_kafka_source.admin import KafkaAdmin, PartitionDescription, TopicDescription
from spark_kafka_source.command_line.configuration import configuration
from spark_kafka_source.command_line.output import Output

_TOPICS = ("topic", "partitions", "replicas", "under_replicated", "leaderless", "internal", "error")
_PARTITIONS = ("topic", "partition", "leader", "replicas", "isr", "earliest", "latest", "error")
_NONE = "There are no topics"


def topics(arguments: argparse.Namespace, output: Output) -> int:
    """Show a row for each topic. With names or `--partitions`, show a row for each partition."""
    with KafkaAdmin(**configuration(arguments)) as admin:
        if arguments.names or arguments.partitions:
            found = admin.describe_topics(arguments.names or None)
            rows = [_partition(each) for topic in found for each in topic.partitions]
            output.rows(rows, _PARTITIONS, _NONE)
        else:
            output.rows([_topic(each) for each in admin.list_topics()], _TOPICS, _NONE)
    return 0


def _topic(topic: TopicDescription) -> dict[str, object]:
    return {
        "topic": topic.name,
        "id": str(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "under_replicated": sum(each.under_replicated for each in topic.partitions),
        "leaderless": sum(each.leader is None for each in topic.partitions),
        "internal": topic.is_internal,
        "error": topic.error,
    }


def _partition(partition: PartitionDescription) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "offline": list(partition.offline_replicas),
        "earliest": partition.earliest,
        "latest": partition.latest,
        "error": partition.error,
    }
