"""OAUTHBEARER by RFC 7628."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.net.sasl import AuthenticationError
from spark_kafka_source.net.sasl.oauthbearer import OAuthBearer
from spark_kafka_source.net.sasl.tokens import RefreshSettings, TokenCache
from tests.net.sasl.tokens_of_tests import CANARY, Clock, Fixed, Source


def client() -> OAuthBearer:
    return OAuthBearer(TokenCache(Fixed(), RefreshSettings()))


def test_the_client_message() -> None:
    extensions = (("logicalCluster", "lkc-1"), ("identityPoolId", "pool-1"))
    bearer = OAuthBearer(TokenCache(Fixed("abc"), RefreshSettings()), extensions)
    assert bearer.first() == (
        b"n,,\x01auth=Bearer abc\x01logicalCluster=lkc-1\x01identityPoolId=pool-1\x01\x01"
    )
    assert bearer.next(b"") is None
    assert OAuthBearer(TokenCache(Fixed("abc"), RefreshSettings())).first() == (
        b"n,,\x01auth=Bearer abc\x01\x01"
    )


def test_an_error_is_acknowledged_and_raised() -> None:
    bearer = client()
    bearer.first()
    status = f"invalid_token {CANARY} {'x' * 500}"
    assert bearer.next(json.dumps({"status": status, "scope": "s"}).encode()) == b"\x01"
    with pytest.raises(AuthenticationError, match=r"refused the token: 'invalid_token \.\.\. xx"):
        bearer.next(b"")
    with pytest.raises(AuthenticationError) as refused:
        bearer.next(b"more")
    assert CANARY not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_refused_token_is_not_shown_again() -> None:
    source = Source(Clock())
    tokens = TokenCache(source, RefreshSettings(), clock=source.clock)
    bearer = OAuthBearer(tokens)
    assert b"token-1" in bearer.first()
    bearer.next(b'{"status":"invalid_token"}')
    assert b"token-2" in OAuthBearer(tokens).first()


@given(
    st.binary(min_size=1)
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["status", "x"]), inner),
    ).map(lambda found: json.dumps(found).encode())
)
def test_any_error_is_raised(challenge: bytes) -> None:
    bearer = client()
    bearer.first()
    assert bearer.next(challenge) == b"\x01"
    with pytest.raises(AuthenticationError):
        bearer.next(b"")


@pytest.mark.parametrize("challenge", [b"[" * 15_000, b"1" * 15_000, b'{"status":' * 10_000])
def test_json_to_choke_on(challenge: bytes) -> None:
    bearer = client()
    assert bearer.next(challenge) == b"\x01"
    with pytest.raises(AuthenticationError, match="it does not say why"):
        bearer.next(b"")
