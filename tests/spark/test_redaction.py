"""No error of this package shows a value that the session redacts in Spark's texts."""

import pickle
import traceback
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import REDACTED
from spark_kafka_source.spark import KafkaDataSource
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.redaction import Redaction
from spark_kafka_source.testing.memory import MemoryBroker
from tests.spark.settings import BOOTSTRAP_SERVERS, shipped

CANARY = "hunter2-canary"
OF_OFFSETS = Redaction(sql_redaction_options_regex="(?i)offsets")


def refused(option: str, value: str, redaction: Redaction | None = None) -> str:
    """Return the text of the error, with its representation and its traceback."""
    given = BOOTSTRAP_SERVERS | {"subscribe": "a", option: value}
    with pytest.raises(ConfigurationError) as caught:
        parse_source_options(given, redaction=redaction)
    error = caught.value
    assert caught.value.__cause__ is None
    return f"{error} {error!r} {''.join(traceback.format_exception(error))}"


def test_a_value_is_shown_where_no_expression_matches() -> None:
    assert CANARY in refused("startingOffsets", CANARY)


def test_by_an_options_name() -> None:
    text = refused("startingOffsets", CANARY, OF_OFFSETS)
    assert CANARY not in text
    assert f"Option 'startingOffsets': found {REDACTED}. Give earliest or" in text


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("startingOffsets", f"password={CANARY}"),
        ("startingOffsets", f'{{"a": {CANARY} "token"}}'),
        ("startingOffsets", f'{{"my secret": {{"{CANARY}": 0}}}}'),
        ("columns", f"{CANARY},secret"),
        ("partitions", f"{CANARY},secret"),
        ("kafka.bootstrap.servers", f"b:1,{CANARY},secret:1"),
        ("maxOffsetsPerTrigger", f"{CANARY} as accessKey"),
        ("maxBytesPerTrigger", f"{CANARY} url"),
        ("kafka.security.protocol", f"{CANARY} url"),
    ],
)
def test_by_its_value_wherever_a_piece_of_it_is_shown(option: str, value: str) -> None:
    text = refused(option, value)
    assert CANARY not in text
    assert REDACTED in text


def test_what_is_not_the_value_is_still_said() -> None:
    text = refused("kafka.sasl.oauthbearer.client.credentials.client.secret", CANARY)
    assert "has no effect with PLAINTEXT" in text
    assert CANARY not in text


def test_all_where_an_expression_is_none_of_pythons() -> None:
    assert CANARY not in refused("startingOffsets", CANARY, Redaction("(?<a>x)"))


def test_when_the_brokers_are_asked_too() -> None:
    with MemoryBroker(1) as broker:
        given = {
            "kafka.bootstrap.servers": str(broker.address()),
            "subscribe": CANARY,
            "fetchOffset.numRetries": "0",
        }

        class OfSession(KafkaDataSource):
            redaction = Redaction("subscribe")

        for kind, shows in ((KafkaDataSource, True), (OfSession, False)):
            reader = shipped(kind(given)).reader(kind(given).schema())
            with pytest.raises(ConfigurationError, match=r"topic .* does not exist") as caught:
                reader.partitions()
            assert (CANARY in str(caught.value)) is shows


def test_an_error_travels() -> None:
    error = ConfigurationError("a", "found {} and {}", "Give b", "x\n" * 1_000, 7)
    again = pickle.loads(pickle.dumps(error))  # bytes of this test
    assert str(again) == str(error)
    assert str(error.without_values()) == f"Option 'a': found {REDACTED} and {REDACTED}. Give b"
    assert len(repr(error)) < 1_000


@pytest.mark.spark
def test_the_defaults_hide_what_sparks_hide(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    entries = getattr(getattr(jvm.org.apache.spark.internal.config, "package$"), "MODULE$")
    conf = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    ours, names = Redaction(), entries.SECRET_REDACTION_PATTERN().defaultValueString()
    # The end is of Spark 4.3.
    assert ours.redaction_regex in (names, f"{names}|credential")
    assert ours.sql_redaction_options_regex == (
        conf.SQL_OPTIONS_REDACTION_PATTERN().defaultValueString()
    )


@pytest.mark.spark
def test_a_sessions_own_expressions(spark: SparkSession) -> None:
    name = "spark.sql.redaction.options.regex"
    spark.conf.set(name, "(?i)startingoffsets")
    try:
        spark_kafka_source.register(spark)
        reader = spark.read.format("pykafka").options(**BOOTSTRAP_SERVERS)
        with pytest.raises(Exception, match="startingOffsets") as caught:
            reader.option("subscribe", "a").option("startingOffsets", CANARY).load()
        assert REDACTED in str(caught.value)
        assert CANARY not in str(caught.value)
    finally:
        spark.conf.unset(name)
        spark.dataSource.register(KafkaDataSource)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"subscribe": "events", "kafka.group.id": "g"}, "subscribe='events'"),
        ({"topic": "t", "queryName": "orders"}, "queryName='orders'"),
        ({"subscribePattern": f"{CANARY}-secret.*"}, "subscribePattern"),
        ({}, ""),
    ],
)
def test_a_log_names_the_query_by_what_is_not_hidden(options: dict[str, str], shown: str) -> None:
    assert KafkaDataSource(BOOTSTRAP_SERVERS | options)._query == shown
