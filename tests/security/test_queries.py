"""Queries with all logins to a secured broker, and their errors without a valid login."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source import Secret, Token, register
from spark_kafka_source.spark import KafkaDataSource
from spark_kafka_source.testing import LocalKafka
from tests.security.options import (
    ENCRYPTED,
    FORMS,
    USERS,
    WAYS,
    certificate_options,
    options_of,
    token_options,
    trust_options,
)
from tests.security.rows import PARTITIONS, ROWS
from tools.traffic import TIMEOUT_SECONDS

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def read(spark: SparkSession, options: Mapping[str, str], topic: str) -> list[bytes]:
    rows = spark.read.format("pykafka").options(**options).option("subscribe", topic).load()
    return sorted(row.value for row in rows.select("value").collect())


def failure_of(spark: SparkSession, options: Mapping[str, str], topic: str = "thousand") -> str:
    """Return the error text of a query. The query fails at once."""
    started_seconds = time.monotonic()
    with pytest.raises(Exception, match=r".") as caught:
        read(spark, options, topic)
    assert time.monotonic() - started_seconds < 60  # Retries would take much longer.
    text = str(caught.value)
    for password in USERS.values():
        assert password not in text
    return text


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_a_batch_reads_all_rows(
    spark: SparkSession, secured: LocalKafka, thousand: str, listener: str, mechanism: str
) -> None:
    assert read(spark, options_of(secured, listener, mechanism), thousand) == sorted(ROWS)


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_a_batch_writes_all_rows(
    spark: SparkSession, secured: LocalKafka, topic: str, listener: str, mechanism: str
) -> None:
    secured.create_topic(topic, PARTITIONS)
    rows = spark.createDataFrame([(each,) for each in ROWS], "value binary").repartition(2)
    writing = rows.write.format("pykafka").mode("append").option("topic", topic)
    writing.options(**options_of(secured, listener, mechanism)).save()
    assert read(spark, options_of(secured, "CLIENT"), topic) == sorted(ROWS)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "JKS"])
@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_certificates_in_every_form(
    spark: SparkSession, secured: LocalKafka, thousand: str, listener: str, form: str
) -> None:
    assert read(spark, options_of(secured, listener, form=form), thousand) == sorted(ROWS)


def test_a_key_that_is_encrypted(spark: SparkSession, secured: LocalKafka, thousand: str) -> None:
    options = options_of(secured, "SSL") | {
        "kafka.bootstrap.servers": secured.bootstrap_servers_of("MTLS")
    }
    key = certificate_options(secured.authority.issue("alice"), ENCRYPTED)
    assert read(spark, options | key, thousand) == sorted(ROWS)


def test_a_stream_reads_by_tls_and_sasl_and_commits(
    spark: SparkSession, secured: LocalKafka, thousand: str, tmp_path: Path
) -> None:
    options = options_of(secured, "SASL_SSL", "SCRAM-SHA-512")
    rows = spark.readStream.format("pykafka").options(**options)
    rows = rows.option("subscribe", thousand).option("startingOffsets", "earliest")
    writing = rows.option("kafka.group.id", "secured").load().writeStream.format("noop")
    query = writing.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(TIMEOUT_SECONDS)
    assert sum(each["numInputRows"] for each in query.recentProgress) == len(ROWS)
    described = secured.tool("consumer-groups", "--describe", "--group", "secured")
    assert len(re.findall(r"thousand +\d +250 +250 +0 ", described)) == 4


def test_a_delegation_token(spark: SparkSession, secured: LocalKafka, thousand: str) -> None:
    token = secured.delegation_token("alice")
    options = options_of(secured, "SASL_SSL", "SCRAM-SHA-256")
    options |= token_options(token.token_id, token.hmac.reveal())
    assert read(spark, options, thousand) == sorted(ROWS)


@dataclass(frozen=True)
class Provider:
    """A provider of an existing token."""

    text: Secret

    def token(self) -> Token:
        return Token(self.text, time.time() + 600)


def test_tokens_of_the_users_own(spark: SparkSession, secured: LocalKafka, thousand: str) -> None:
    """The provider runs on the driver and on the executors."""
    options = options_of(secured, "SASL_SSL", "OAUTHBEARER")
    kept = {name: value for name, value in options.items() if "oauth" not in name}
    kept = {name: value for name, value in kept.items() if "handler" not in name}
    kept["kafka.sasl.jaas.config"] = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    )
    register(spark, token_provider=Provider(secured.token_server.token("alice")))
    try:
        assert read(spark, kept, thousand) == sorted(ROWS)
    finally:
        spark.dataSource.register(KafkaDataSource)


# -- failed logins ---------------------------------------------------------------------------------

ORDINARY = ("SASL_SSL", "SCRAM-SHA-256")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password(spark: SparkSession, secured: LocalKafka, mechanism: str) -> None:
    text = failure_of(spark, options_of(secured, "SASL_SSL", mechanism, password="wrong-canary"))
    assert mechanism in text
    assert "kafka.sasl" in text
    assert "wrong-canary" not in text


def test_a_mechanism_that_the_broker_has_not(spark: SparkSession, secured: LocalKafka) -> None:
    options = options_of(secured, *ORDINARY) | {
        "kafka.bootstrap.servers": secured.bootstrap_servers_of("SASL_SSL"),
        "kafka.sasl.mechanism": "AWS_MSK_IAM",
        "kafka.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    }
    assert "aws" in failure_of(spark, options).lower()


def test_an_authority_that_is_not_trusted(spark: SparkSession, secured: LocalKafka) -> None:
    options = options_of(secured, "SSL") | {
        "kafka.bootstrap.servers": secured.bootstrap_servers_of("SSL_OTHER_AUTHORITY")
    }
    text = failure_of(spark, options)
    assert "kafka.ssl.truststore" in text


def test_a_certificate_that_has_expired(spark: SparkSession, secured: LocalKafka) -> None:
    options = options_of(secured, "SSL") | {
        "kafka.bootstrap.servers": secured.bootstrap_servers_of("SSL_EXPIRED")
    }
    assert "expired" in failure_of(spark, options)


def test_a_certificate_of_another_host(spark: SparkSession, secured: LocalKafka) -> None:
    options = options_of(secured, "SSL") | {
        "kafka.bootstrap.servers": secured.bootstrap_servers_of("SSL_OTHER_HOST")
    }
    text = failure_of(spark, options)
    assert "127.0.0.1" in text
    relaxed = options | {"kafka.ssl.endpoint.identification.algorithm": ""}
    assert read(spark, relaxed, "thousand") == sorted(ROWS)


def test_no_certificate_where_one_is_required(spark: SparkSession, secured: LocalKafka) -> None:
    options = options_of(secured, "SSL") | {
        "kafka.bootstrap.servers": secured.bootstrap_servers_of("MTLS")
    }
    assert "kafka.ssl.keystore" in failure_of(spark, options)


@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
def test_plaintext_where_tls_is_spoken(
    spark: SparkSession, secured: LocalKafka, listener: str
) -> None:
    options = {"kafka.bootstrap.servers": secured.bootstrap_servers_of(listener)}
    text = failure_of(spark, options)
    assert "TLS" in text
    assert "kafka.security.protocol" in text


def test_tls_where_plaintext_is_spoken(spark: SparkSession, secured: LocalKafka) -> None:
    options = {
        "kafka.bootstrap.servers": secured.bootstrap_servers,
        "kafka.security.protocol": "SSL",
    } | trust_options(secured.authority, "PEM")
    assert "kafka.security.protocol" in failure_of(spark, options)


def test_a_java_keystore_is_refused_with_what_converts_it(
    spark: SparkSession, secured: LocalKafka
) -> None:
    assert "keytool -importkeystore" in failure_of(spark, options_of(secured, "SSL", form="JKS"))
