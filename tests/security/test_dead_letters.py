"""Dead letters need the right to write to their topic, from the start of a query on."""

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.consumer.consumer_records import ConsumerRecords
from spark_kafka_source.dead_letters import DeadLetterError
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing import LocalKafka
from tests.consumer.consumers import poll_until
from tests.security.acls import allow, deny
from tests.security.options import Options, options_of
from tests.testing.traffic import consume, produce

pytestmark = pytest.mark.kafka

JSON = {"value.format": "json", "value.schema": "id BIGINT", "badRecords": "topic"}


@pytest.fixture
def letters(secured: LocalKafka, topic: str) -> str:
    """Return a topic of letters that carol may describe. She may read the topic `topic`."""
    letters = f"{topic}-letters"
    for each in (topic, letters):
        secured.create_topic(each)
    produce(secured.bootstrap_servers, topic, [b'{"id": 1}', b"?", b'{"id": 2}'])
    allow(secured, "carol", "READ", topic=topic)  # It includes DESCRIBE.
    allow(secured, "carol", "DESCRIBE", topic=letters)
    return letters


def options(secured: LocalKafka, letters: str) -> Options:
    more = {**JSON, "badRecords.topic": letters, "startingOffsets": "earliest"}
    return options_of(secured, "MTLS", user="carol") | more


@pytest.mark.spark
def test_a_query_without_the_right_is_refused_before_it_reads(
    spark: SparkSession, secured: LocalKafka, topic: str, letters: str
) -> None:
    """A right that is taken away later fails the task: the error names the option."""
    reader = spark.read.format("pykafka").options(**options(secured, letters), subscribe=topic)
    with pytest.raises(PySparkException) as refused:
        reader.load()
    text = f"Option 'badRecords.topic': is denied: the user needs WRITE on topic '{letters}'"
    assert text in str(refused.value)
    allow(secured, "carol", "WRITE", topic=letters)
    frame = reader.load()
    assert sorted(row[0] for row in frame.select("value.id").collect()) == [1, 2]
    assert consume(secured.bootstrap_servers, letters, 1) == [b"?"]
    deny(secured, "carol", "WRITE", topic=letters)
    with pytest.raises(PySparkException) as failed:
        frame.collect()
    assert f"{topic}-0, offset 1: bad records were not written" in str(failed.value)
    assert "'badRecords.topic' names" in str(failed.value)
    assert f"the user needs WRITE on topic '{letters}'" in str(failed.value)


def test_a_consumer_without_the_right(secured: LocalKafka, topic: str, letters: str) -> None:
    """The right may come, and go, while the consumer lives."""
    named: dict[str, Any] = {
        each.removeprefix("kafka."): value for each, value in options(secured, letters).items()
    }
    del named["startingOffsets"]
    ids: list[int] = []
    named["auto.offset.reset"] = "earliest"
    with KafkaConsumer(**named) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(ConfigurationError, match=r"'badRecords\.topic': is denied: the user"):
            poll_until(consumer, lambda: False)
        allow(secured, "carol", "WRITE", topic=letters)
        poll_until(consumer, lambda: len(ids) == 2, lambda found: ids.extend(_ids(found)))
        deny(secured, "carol", "WRITE", topic=letters)
        produce(secured.bootstrap_servers, topic, [b"?again"])
        with pytest.raises(DeadLetterError, match="needs WRITE on topic"):
            poll_until(consumer, lambda: False)
    assert ids == [1, 2]
    assert consume(secured.bootstrap_servers, letters, 1) == [b"?"]


def _ids(records: ConsumerRecords) -> list[int]:
    return [each.value["id"] for each in records]
