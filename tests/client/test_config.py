"""Kafka's client configuration by `kafka.*` options."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import SECURITY_OPTIONS, Address, ConnectionSettings
from spark_kafka_source.options.declaration import Settings

SERVERS = {"kafka.bootstrap.servers": "a:1"}


def config(**values: str) -> ClientConfig:
    given_values = {"kafka." + name.replace("_", "."): value for name, value in values.items()}
    return ClientConfig.from_settings(Settings(SERVERS | given_values))


def test_defaults_are_those_of_kafka() -> None:
    assert config() == ClientConfig(
        bootstrap_servers=(Address("a", 1),),
        connection=ConnectionSettings(
            client_id="spark-kafka-source",
            socket_connection_setup_timeout_ms=10_000,
            request_timeout_ms=30_000,
            connections_max_idle_ms=540_000,
        ),
        default_api_timeout_ms=60_000,
        retry_backoff_ms=100,
        retry_backoff_max_ms=1_000,
        metadata_max_age_ms=300_000,
    )


def test_every_setting_is_read() -> None:
    options = CLIENT_OPTIONS.keys() - SECURITY_OPTIONS.keys()
    numbers = sorted(name for name in options if name.endswith((".ms", ".bytes")))
    values = {name: str(1000 + number) for number, name in enumerate(numbers)}
    found = ClientConfig.from_settings(Settings(SERVERS | values | {"kafka.client.id": "me"}))
    flat = str(found)
    assert "client_id='me'" in flat
    for name in numbers:
        field = name.removeprefix("kafka.").replace(".", "_")
        assert f"{field}={values[name]}" in flat


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request_timeout_ms", "0"),
        ("request_timeout_ms", "-1"),
        ("default_api_timeout_ms", "0"),
        ("connections_max_idle_ms", "-2"),
        ("request_timeout_ms", "2147483648"),
        ("request_timeout_ms", "1.5"),
        ("request_timeout_ms", ""),
        ("request_timeout_ms", "9" * 5000),
        ("retry_backoff_ms", "\u0661"),
        ("receive_buffer_bytes", "-2"),
        ("security_protocol", "TLS"),
        ("ssl_truststore_location", "x"),
        ("sasl_mechanism", "PLAIN"),
        ("ssl_engine_factory_class", "x"),
    ],
)
def test_a_value_of_no_use_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(**{name: value})
    assert caught.value.option == "kafka." + name.replace("_", ".")


def test_less_than_nothing_leaves_it_to_the_system_or_to_the_broker() -> None:
    connection = config(connections_max_idle_ms="-1", receive_buffer_bytes="-1").connection
    assert (connection.connections_max_idle_ms, connection.receive_buffer_bytes) == (-1, -1)


@pytest.mark.parametrize("servers", ["", "  "])
def test_without_servers_nothing_goes(servers: str) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers"):
        ClientConfig.from_settings(Settings({"kafka.bootstrap.servers": servers}))


def test_stores_are_read_with_the_options() -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(security_protocol="SSL", ssl_truststore_location="/no/such/file")
    assert caught.value.option == "kafka.ssl.truststore.location"


def test_secrets_are_in_no_repr() -> None:
    found = config(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="alice",
        sasl_password="canary",
    )
    assert found.connection.security.sasl is not None
    assert "canary" not in repr(found)


@given(st.text(), st.sampled_from(sorted(CLIENT_OPTIONS)))
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    try:
        ClientConfig.from_settings(Settings(SERVERS | {name: text}))
    except ConfigurationError as error:
        assert error.option == name
