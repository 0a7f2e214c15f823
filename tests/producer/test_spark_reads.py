"""Both Spark formats read a `KafkaProducer`'s records, with the same result as confluent-kafka."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_kafka_source import KafkaProducer
from spark_kafka_source.records import COLUMNS_WITH_HEADERS, Codec
from spark_kafka_source.records.columns import schema
from spark_kafka_source.testing import LocalKafka
from tests.producer.reading import ByPartition, read_by_confluent
from tests.producer.rows import ROWS, as_columns, rows
from tests.spark.digest import digest

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer]

PARTITIONS = 3


def test_both_formats_read_what_the_producer_wrote_in_all_codecs(
    spark: SparkSession, kafka: LocalKafka, topic: str
) -> None:
    kafka.create_topic(topic, PARTITIONS)
    servers = kafka.bootstrap_servers
    given = rows()
    for codec in Codec:
        with KafkaProducer(bootstrap_servers=servers, compression_type=str(codec)) as producer:
            producer.send_columns(topic, as_columns(given))
            for row in given:
                producer.send(topic, **row)
    theirs = as_spark_has_them(topic, read_by_confluent(servers, topic, PARTITIONS))
    assert theirs.num_rows == 2 * ROWS * len(Codec)
    for name in ("pykafka", "kafka"):
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
        read = spark.read.format(name).options(**options).load().toArrow()
        assert digest(read) == digest(theirs), name


def as_spark_has_them(topic: str, found: ByPartition) -> pa.Table:
    cells = [
        (
            row.key,
            row.value,
            topic,
            partition,
            row.offset,
            row.timestamp_ms * 1000,
            0,
            list(row.headers) or None,
        )
        for partition, read in found.items()
        for row in read
    ]
    fields = schema(COLUMNS_WITH_HEADERS)
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*cells, strict=True), fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=fields)
