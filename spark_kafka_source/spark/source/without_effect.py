"""Kafka's settings that do nothing for a reader, with the reasons.

https://kafka.apache.org/documentation/#consumerconfigs
"""

from spark_kafka_source.client.without_effect import MEANT_BY_OTHERS, by_option
from spark_kafka_source.consumer.without_effect import WITHOUT_EFFECT
from spark_kafka_source.spark.without_effect import MEANT_IN_FUNCTIONS, WithoutEffect

READING = WithoutEffect(
    reasons={
        **WITHOUT_EFFECT,
        **by_option(
            {
                "the group has no members, as Spark plans the partitions": """
                    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
                    max.poll.interval.ms partition.assignment.strategy session.timeout.ms
                    """,
                "with 'kafka.group.id' each finished micro-batch is committed": (
                    "auto.commit.interval.ms"
                ),
                "topics are never created by reading": "allow.auto.create.topics",
                "records are not polled one by one; use 'maxOffsetsPerTrigger' or "
                "'maxRecordsPerPartition'": "max.poll.records",
                "'subscribePattern' leaves internal topics out": "exclude.internal.topics",
                "the figures are in Spark's progress and `LagListener`": """
                    enable.metrics.push metric.reporters metrics.num.samples
                    metrics.recording.level metrics.sample.window.ms
                    """,
            }
        ),
    },
    meant={
        **MEANT_BY_OTHERS,
        **MEANT_IN_FUNCTIONS,
        **dict.fromkeys(("topics", "kafka.topic", "kafka.topics"), "subscribe"),
    },
)
