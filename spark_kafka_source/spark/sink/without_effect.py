"""Kafka's settings without an effect on a writer, with the reasons.

https://kafka.apache.org/documentation/#producerconfigs
"""

from spark_kafka_source.client.without_effect import by_option
from spark_kafka_source.producer.without_effect import MEANT_BY_OTHERS, WITHOUT_EFFECT
from spark_kafka_source.spark.without_effect import MEANT_IN_FUNCTIONS, WithoutEffect

WRITING = WithoutEffect(
    reasons={
        **WITHOUT_EFFECT,
        **by_option(
            {
                "brokers have it only behind a switch for unstable features (KIP-939), and"
                " transactions end within 'kafka.transaction.timeout.ms'": """
                    transaction.two.phase.commit.enable
                    """,
                "the figures are in Spark's progress": """
                    enable.metrics.push metric.reporters metrics.num.samples
                    metrics.recording.level metrics.sample.window.ms
                    """,
            }
        ),
    },
    meant={
        **MEANT_BY_OTHERS,
        **MEANT_IN_FUNCTIONS,
        **dict.fromkeys(("topics", "kafka.topic", "kafka.topics"), "topic"),
    },
    # Options of the stream itself, which Spark hands on.
    of_spark=frozenset(("checkpointlocation", "queryname")),
)
