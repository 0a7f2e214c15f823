"""All secured listeners of a LocalKafka accept the right users, with an independent client."""

import socket
import ssl

import pytest
from confluent_kafka import KafkaError

from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.certificates import CertificateAuthority
from spark_kafka_source.testing.token_server import TokenServer
from tests.security.options import USERS, WAYS, independent, token_callback
from tests.security.refusals import refusal
from tests.security.rows import PARTITIONS, ROWS
from tests.testing.traffic import consume, produce

pytestmark = pytest.mark.kafka

VALUES = [b"a", b"b", b"c"]
CERTIFICATE = "certificate"
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_records_pass_each_listener_by_each_mechanism(
    secured: LocalKafka, topic: str, listener: str, mechanism: str
) -> None:
    secured.create_topic(topic)
    where = secured.bootstrap_servers_of(listener)
    settings = independent(secured, listener, mechanism)
    produce(where, topic, VALUES, settings)
    assert consume(where, topic, 3, group=topic, settings=settings) == VALUES


def test_a_thousand_rows_are_there_to_read(secured: LocalKafka, thousand: str) -> None:
    settings = independent(secured, "SASL_SSL", "PLAIN")
    where = secured.bootstrap_servers_of("SASL_SSL")
    assert consume(where, thousand, 250, settings=settings) == ROWS[::PARTITIONS]


@pytest.mark.parametrize("mechanism", PASSWORDS)
@pytest.mark.parametrize(("user", "password"), [("alice", USERS["bob"]), ("nobody", "x")])
def test_a_wrong_password_is_refused(
    secured: LocalKafka, mechanism: str, user: str, password: str
) -> None:
    settings = independent(secured, "SASL_SSL", mechanism, user=user, password=password)
    error = refusal(secured.bootstrap_servers_of("SASL_SSL"), settings)
    assert error.code() == KafkaError._AUTHENTICATION


def test_an_expired_token_is_refused(secured: LocalKafka) -> None:
    token = secured.token_server.token("alice", lifetime_seconds=-60)
    assert refused_token(secured, token.reveal()).code() == KafkaError._AUTHENTICATION


def test_a_token_of_another_server_is_refused(secured: LocalKafka) -> None:
    with TokenServer({}) as other:
        token = other.token("alice", iss=secured.token_server.issuer)
    assert refused_token(secured, token.reveal()).code() == KafkaError._AUTHENTICATION


def refused_token(kafka: LocalKafka, token: str) -> KafkaError:
    settings = independent(kafka, "SASL_SSL", "OAUTHBEARER") | {"oauth_cb": token_callback(token)}
    return refusal(kafka.bootstrap_servers_of("SASL_SSL"), settings)


def test_who_shows_no_certificate_is_refused_where_one_is_asked_for(secured: LocalKafka) -> None:
    error = refusal(secured.bootstrap_servers_of("MTLS"), independent(secured, "SSL"), CERTIFICATE)
    assert CERTIFICATE in error.str()


@pytest.mark.parametrize("expired", [True, False])
def test_a_certificate_that_is_not_good_is_refused(
    secured: LocalKafka, tmp_path_factory: pytest.TempPathFactory, expired: bool
) -> None:
    stranger = CertificateAuthority(tmp_path_factory.mktemp("stranger"))
    certificate = (secured.authority if expired else stranger).issue("alice", expired=expired)
    settings = independent(secured, "MTLS") | {
        "ssl.certificate.location": str(certificate.chain),
        "ssl.key.location": str(certificate.key),
    }
    error = refusal(secured.bootstrap_servers_of("MTLS"), settings, CERTIFICATE)
    assert CERTIFICATE in error.str()


@pytest.mark.parametrize(
    ("listener", "reason"),
    [
        ("SSL_EXPIRED", "certificate has expired"),
        ("SSL_OTHER_HOST", "not valid for '127.0.0.1'"),
        ("SSL_OTHER_AUTHORITY", "self-signed certificate in certificate chain"),
    ],
)
def test_clients_turn_back_from_what_they_must_refuse(
    secured: LocalKafka, listener: str, reason: str
) -> None:
    where = secured.bootstrap_servers_of(listener)
    # librdkafka reports one or the other.
    refused = refusal(where, independent(secured, listener), "certificate verify failed")
    assert refused.code() in (KafkaError._SSL, KafkaError._TRANSPORT)
    assert "certificate verify failed" in refused.str()
    # librdkafka does not give the reason.
    host, port = where.split(":")
    context = ssl.create_default_context(cafile=str(secured.authority.certificate))
    with (
        socket.create_connection((host, int(port)), 30) as plain,
        pytest.raises(ssl.SSLCertVerificationError, match=reason),
    ):
        context.wrap_socket(plain, server_hostname=host)
