"""What a writer's options mean, and which are refused."""

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import Address
from spark_kafka_source.producer.config import Acks
from spark_kafka_source.records import Codec
from tests.spark.settings import shipped
from tests.spark.sink.settings import parsed


def test_the_defaults() -> None:
    options = parsed()
    assert options.producer.client.bootstrap_servers == (Address("broker", 9092),)
    assert options.topic is None
    assert options.producer.acks is Acks.ALL
    assert options.producer.enable_idempotence


def test_what_is_given_is_understood() -> None:
    options = shipped(
        parsed(TOPIC=" t ", kafka_acks="1", kafka_compression_type="zstd", kafka_linger_ms="9")
    )
    assert options.topic == "t"
    assert options.producer.acks is Acks.LEADER
    assert options.producer.compression_type is Codec.ZSTD
    assert options.producer.linger_ms == 9


@pytest.mark.parametrize(
    ("option", "value", "right"),
    [
        ("topic", "", "Names have up to 249 letters"),
        ("topic", "a b", "Names have up to 249 letters"),
        ("topic", "a,b", "Names have up to 249 letters"),
        ("kafka.key.serializer", "x", "make bytes of them in the query"),
        ("kafka.value.serializer", "x", "make bytes of them in the query"),
        ("kafka.interceptor.classes", "x", "Java classes"),
        ("kafka.transactional.id", "x", "Each task has one of its own"),
        ("transactionalIdPrefix", "a.b", "no dot"),
        ("transactionalIdPrefix", "a", "or leave this out"),
        ("kafka.partitioner.class", "org.example.Mine", "a column 'partition'"),
        ("kafka.acks", "2", "Give one of all, 1, 0"),
        ("kafka.delivery.timeout.ms", "1", "'kafka.request.timeout.ms'"),
    ],
)
def test_a_wrong_value_is_refused_with_a_right_one(option: str, value: str, right: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parsed(**{option: value})
    assert refused.value.option == option
    assert str(refused.value).startswith(f"Option '{option}': ")
    assert right in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("kafka.group.id", "it is for reading"),
        ("startingOffsets", "it is for reading"),
        ("kafka.max.poll.records", "it is a consumer's, and this only writes"),
        ("kafka.metadata.max.idle.ms", "a topic is known as long as the producer is"),
    ],
)
def test_what_a_reader_has_is_said_to_be_its(
    given: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    parsed(**{given: "1"})
    (message,) = (record.getMessage() for record in caplog.records)
    assert message == f"Option '{given}' has no effect here: {said}"


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("topics", "topic"),
        ("kafka.topic", "topic"),
        ("kafka.lingr.ms", "kafka.linger.ms"),
        ("linger.ms", "kafka.linger.ms"),
        ("kafka.queue.buffering.max.ms", "kafka.linger.ms"),
    ],
)
def test_a_slip_is_an_error(slip: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Did you mean '{meant}'"):
        parsed(**{slip: "1"})


def test_what_spark_hands_on_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    parsed(checkpointLocation="x", queryName="x", path="x", topic="t")
    assert not caplog.records
