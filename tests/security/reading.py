"""A query's read without Spark."""

from collections.abc import Iterator, Mapping

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.groups import commit_offsets
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source import tasks
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.tasks import KafkaInputPartition

QUIETLY = {"progress": "false"}


def read(
    options: Mapping[str, str], token_provider: TokenProvider | None = None
) -> Iterator[bytes]:
    """Plan, read all, and commit if there is a group. Return the values."""
    parsed = parse_source_options({**QUIETLY, **options}, token_provider)
    reader = KafkaBatchReader(parsed)
    ends = {}
    try:
        for partition in reader.partitions():
            for rows in reader.read(partition):
                yield from rows["value"].to_pylist()
            assert isinstance(partition, KafkaInputPartition)
            ends.update({each.topic_partition: each.end for each in partition.ranges})
    finally:
        # A Spark worker would keep its connections for its next task.
        tasks._kept_clients.take(parsed.client).close()
    if parsed.group_id:
        with KafkaClient(parsed.client) as client:
            client.run(commit_offsets(client, parsed.group_id, ends))
