"""The interface between a connection and all SASL mechanisms."""

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.net.sasl import AuthenticationError, SaslSettings, TokenUnavailableError
from spark_kafka_source.net.sasl.mechanism import Mechanism, mechanism_for
from spark_kafka_source.options.declaration import Settings
from tests.net.sasl.scram_server import ScramServer
from tests.net.sasl.tokens_of_tests import Fixed

CANARY = "hunter2-canary"


def mechanism(name: str) -> Mechanism:
    values = {
        "kafka.sasl.mechanism": name,
        "kafka.sasl.username": "me",
        "kafka.sasl.password": CANARY,
    }
    found = SaslSettings.from_settings(Settings(values), tls=True, token_provider=Fixed(CANARY))
    return mechanism_for(found, "broker")


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(name: str) -> None:
    client = mechanism(name)
    server = ScramServer("me", CANARY, name.replace("SCRAM-", "").replace("SHA-", "sha"))
    assert client.name == name
    assert client.next(server.final(client.next(server.first(client.first())) or b"")) is None


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("PLAIN", f"\0me\0{CANARY}".encode()),
        ("OAUTHBEARER", f"n,,\x01auth=Bearer {CANARY}\x01\x01".encode()),
    ],
)
def test_what_is_said_at_once(name: str, first: bytes) -> None:
    client = mechanism(name)
    assert (client.name, client.first(), client.next(b"")) == (name, first, None)


def test_extensions_go_along() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    values = {"kafka.sasl.jaas.config": f"{module} required extension_logicalCluster=lkc-1;"}
    found = SaslSettings.from_settings(Settings(values), tls=True, token_provider=Fixed(CANARY))
    assert mechanism_for(found, "broker").first().endswith(b"\x01logicalCluster=lkc-1\x01\x01")


@given(
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]),
    st.lists(st.binary(min_size=1), min_size=2, max_size=3),
)
def test_hostile_challenges_end_in_one_error_that_shows_no_secret(
    name: str, challenges: list[bytes]
) -> None:
    client = mechanism(name)
    client.first()
    with pytest.raises(AuthenticationError) as refused:
        for challenge in challenges:
            client.next(challenge)
    shown = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    assert CANARY not in shown + repr(client) + repr(vars(client))
    assert not refused.value.retriable


def test_only_a_token_that_is_not_to_be_had_is_asked_for_again() -> None:
    assert not AuthenticationError("PLAIN", "no").retriable
    assert TokenUnavailableError("OAUTHBEARER", "away").retriable
    assert str(AuthenticationError("PLAIN", "no")) == "PLAIN: no. Check the options 'kafka.sasl.*'"
