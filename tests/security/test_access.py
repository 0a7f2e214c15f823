"""Kafka's tools create users and rights, and the broker enforces them."""

import socket
import ssl
import struct

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret
from spark_kafka_source.testing import LocalKafka, ToolError
from spark_kafka_source.testing.private_file import write_private
from spark_kafka_source.testing.properties import as_properties
from tests.security.options import (
    FORMS,
    USERS,
    WAYS,
    Options,
    independent,
    options_of,
    token_options,
)
from tests.security.refusals import refusal
from tests.testing.traffic import consume, produce
from tools.traffic import wait_until

pytestmark = pytest.mark.kafka

WAIT_SECONDS = 60
VALUES = [b"a", b"b", b"c"]
JAVA_WAYS = [way for way in WAYS if "BRIEF" not in way[0]]


def refused(kafka: LocalKafka, topic: str, user: str, listener: str, mechanism: str) -> str:
    """Return the broker's error for a user who may not describe a topic, once it enforces that."""
    settings = independent(kafka, listener, mechanism, user=user)
    where = kafka.bootstrap_servers_of(listener)
    client = AdminClient({"bootstrap.servers": where, "log_level": 0, **settings})
    client.poll(0)  # runs the callback for a token
    found: list[KafkaError] = []

    def is_refused() -> bool:
        error = client.list_topics(topic, WAIT_SECONDS).topics[topic].error
        found.extend([error] if error else [])
        return bool(found)

    wait_until(is_refused)
    return found[0].name()


@pytest.fixture
def guarded(secured: LocalKafka, topic: str) -> str:
    """Return a topic with three records that only carol may read."""
    secured.create_topic(topic)
    produce(secured.bootstrap_servers, topic, VALUES)
    secured.allow("carol", "Read", "Describe", topic=topic)
    return topic


def test_what_one_is_granted_others_are_refused(secured: LocalKafka, guarded: str) -> None:
    where, settings = (
        secured.bootstrap_servers_of("MTLS"),
        independent(secured, "MTLS", user="carol"),
    )
    assert consume(where, guarded, 3, settings=settings) == VALUES
    for listener, mechanism in (("SASL_SSL", "SCRAM-SHA-256"), ("SASL_PLAINTEXT", "OAUTHBEARER")):
        assert refused(secured, guarded, "bob", listener, mechanism) == "TOPIC_AUTHORIZATION_FAILED"


def test_a_denial_goes_before_a_grant(secured: LocalKafka, guarded: str) -> None:
    secured.deny("carol", "All", topic=guarded)
    assert refused(secured, guarded, "carol", "MTLS", "") == "TOPIC_AUTHORIZATION_FAILED"


def test_the_plain_listener_may_do_anything(secured: LocalKafka, guarded: str) -> None:
    assert consume(secured.bootstrap_servers, guarded, 3) == VALUES


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_comes_later_and_changes_the_password(secured: LocalKafka, mechanism: str) -> None:
    where = secured.bootstrap_servers_of("SASL_PLAINTEXT")
    for password in ("first, [x]", "second"):
        secured.add_scram_user("later", Secret(password), mechanism)
    settings = independent(secured, "SASL_PLAINTEXT", mechanism, user="later", password="second")
    assert refusal(where, settings | {"sasl.password": "first, [x]"}).code() == (
        KafkaError._AUTHENTICATION
    )
    secured.create_topic(f"of-later-{mechanism}")
    produce(where, f"of-later-{mechanism}", VALUES, settings)


def ask_versions(kafka: LocalKafka, listener: str, options: Options) -> str:
    """Return the broker's API versions, by Kafka's Java client with a Spark query's options."""
    settings = {key.removeprefix("kafka."): value for key, value in options.items()}
    path = write_private(kafka.broker(1).directory / "client", as_properties(settings).encode())
    arguments = ("broker-api-versions", "--command-config", str(path))
    return kafka.tool(*arguments, listener=listener)


@pytest.mark.parametrize(("listener", "mechanism"), JAVA_WAYS)
def test_the_options_of_a_query_are_those_of_kafkas_own_client(
    secured: LocalKafka, listener: str, mechanism: str
) -> None:
    shown = ask_versions(secured, listener, options_of(secured, listener, mechanism))
    assert "Fetch(1)" in shown


@pytest.mark.parametrize("form", FORMS)
def test_kafkas_own_client_reads_every_form_of_certificate(secured: LocalKafka, form: str) -> None:
    options = options_of(secured, "MTLS", form=form)
    assert "Fetch(1)" in ask_versions(secured, "MTLS", options)


def test_a_delegation_token_is_a_way_in(secured: LocalKafka) -> None:
    token = secured.delegation_token("bob")
    options = options_of(secured, "SASL_SSL", "SCRAM-SHA-512")
    options |= token_options(token.token_id, token.hmac.reveal())
    assert "Fetch(1)" in ask_versions(secured, "SASL_SSL", options)
    forged = options | token_options(token.token_id, "forged")
    with pytest.raises(ToolError, match="SaslAuthenticationException"):
        ask_versions(secured, "SASL_SSL", forged)


def test_only_those_who_are_known_get_delegation_tokens(secured: LocalKafka) -> None:
    with pytest.raises(ConfigurationError, match=r"none named 'mallory'.* alice, bob"):
        secured.delegation_token("mallory")


def test_a_brief_session_lasts_a_second(secured: LocalKafka) -> None:
    assert session_lifetime_ms(secured, "SASL_SSL_BRIEF") == 1000
    assert session_lifetime_ms(secured, "SASL_SSL") == 0


def session_lifetime_ms(kafka: LocalKafka, listener: str) -> int:
    """Return the session lifetime in a broker's answer, byte by byte (KIP-368)."""
    host, port = kafka.bootstrap_servers_of(listener).split(":")
    context = ssl.create_default_context(cafile=str(kafka.authority.certificate))
    with (
        socket.create_connection((host, int(port)), 30) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        exchange(connection, 17, 1, struct.pack(">h5s", 5, b"PLAIN"))
        credentials = f"\0bob\0{USERS['bob']}".encode()
        answer = exchange(connection, 36, 1, struct.pack(">i", len(credentials)) + credentials)
    error, message_bytes, auth_bytes, lifetime_ms = struct.unpack(">hhiq", answer)
    assert (error, message_bytes, auth_bytes) == (0, 0, 0)
    return int(lifetime_ms)


def exchange(connection: ssl.SSLSocket, key: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhih", key, version, 0, -1) + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    with connection.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        return stream.read(size)[4:]
