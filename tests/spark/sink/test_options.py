"""The meaning of a writer's options, and the refused ones."""

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.exactly_once.checks import Checkpoint
from spark_kafka_source.net import Address
from spark_kafka_source.producer.config import Acks
from spark_kafka_source.records import Codec
from spark_kafka_source.spark.sink.options import DeliveryGuarantee
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
        ("databricks.serviceCredential", "x", "Amazon MSK"),
        ("kafka.transactional.id", "x", "Each task has one of its own"),
        ("transactionalIdPrefix", "a.b", "no dot"),
        ("transactionalIdPrefix", "a", "or leave this out"),
        ("replayCheck", "none", "give 'doubtfulReplays' accept"),
        ("doubtfulReplays", "fail", "or leave this out"),
        ("checkpointMovedFrom", "/a", "or leave this out"),
        ("doubtfulReplays", "stop", "Give warn or fail or accept"),
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
        (
            "kafka.transaction.two.phase.commit.enable",
            "brokers have it only behind a switch for unstable features (KIP-939), and transactions"
            " end within 'kafka.transaction.timeout.ms'",
        ),
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


# -- exactly once --------------------------------------------------------------------------------

EXACTLY_ONCE = {"deliveryGuarantee": "exactly-once"}


def test_rows_are_written_at_least_once_unless_told_otherwise() -> None:
    assert parsed().guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert (parsed().prefix, parsed().transaction_timeout_ms) == (None, 900_000)


def test_exactly_once_is_understood() -> None:
    given = {"DELIVERYGUARANTEE": "Exactly-Once", "TRANSACTIONALIDPREFIX": " a_B-9 "}
    found = shipped(parsed(**given, kafka_transaction_timeout_ms="5000"))
    assert found.guarantee is DeliveryGuarantee.EXACTLY_ONCE
    assert found.prefix == "a_B-9"
    assert found.transaction_timeout_ms == 5_000


@pytest.mark.parametrize(
    ("given", "option", "right"),
    [
        (
            {"deliveryGuarantee": "at-most-once"},
            "deliveryGuarantee",
            "Give at-least-once or exactly-once",
        ),
        (
            {"deliveryGuarantee": "exactly_once"},
            "deliveryGuarantee",
            "Give at-least-once or exactly-once",
        ),
        (EXACTLY_ONCE | {"kafka.acks": "1"}, "deliveryGuarantee", "Leave that out"),
        (EXACTLY_ONCE | {"kafka.enable.idempotence": "false"}, "deliveryGuarantee", "Leave that"),
        (EXACTLY_ONCE | {"transactionalIdPrefix": ""}, "transactionalIdPrefix", "at most 150"),
        (EXACTLY_ONCE | {"transactionalIdPrefix": "x" * 151}, "transactionalIdPrefix", "150"),
        (EXACTLY_ONCE | {"transactionalIdPrefix": "é"}, "transactionalIdPrefix", "letters"),
        (
            EXACTLY_ONCE | {"kafka.transaction.timeout.ms": "0"},
            "kafka.transaction.timeout.ms",
            "1",
        ),
        (EXACTLY_ONCE | {"kafka.transactional.id": "x"}, "kafka.transactional.id", "of its own"),
    ],
)
def test_exactly_once_is_refused_where_it_cannot_be(
    given: dict[str, str], option: str, right: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parsed(**given)
    assert refused.value.option == option
    assert right in str(refused.value)


SAME = ["/a/b", " /a/b ", "/a/b/", "//a///b", "file:/a/b", "file:///a/b/", "file://a/b"]


@pytest.mark.parametrize(
    ("spellings", "location"),
    [
        (SAME, "/a/b"),
        (
            ["s3a://b/c", "s3a://b//c/", "s3a://key:secret@b/c", "s3a://key:se/cret@b/c"],
            "s3a://b/c",
        ),
        (["hdfs://nn:8020/c", "hdfs://nn:8020//c/"], "hdfs://nn:8020/c"),
        (["hdfs:///c"], "hdfs:///c"),
        (["abfss://container@account/c"], "abfss://container@account/c"),
        (["/", "file:///"], "/"),
    ],
)
def test_a_checkpoint_has_one_location_however_it_is_spelt(
    spellings: list[str], location: str
) -> None:
    for each in spellings:
        given = {"CHECKPOINTLOCATION": each, "checkpointmovedfrom": each}
        assert parsed(**EXACTLY_ONCE, **given).checkpoint == Checkpoint(location, location)


def test_a_checkpoint_is_known_only_if_its_location_is_given() -> None:
    assert parsed(**EXACTLY_ONCE).checkpoint == Checkpoint(None, None)


def test_a_timeout_of_transactions_without_any_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parsed(**EXACTLY_ONCE, kafka_transaction_timeout_ms="5000")
    assert not caplog.records
    parsed(kafka_transaction_timeout_ms="5000")
    (message,) = (record.getMessage() for record in caplog.records)
    assert message == (
        "Option 'kafka.transaction.timeout.ms' has no effect here: there are transactions only "
        "with 'deliveryGuarantee' exactly-once"
    )
