"""SCRAM by its RFCs, with any name and password, and against hostile servers."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.net.sasl import AuthenticationError, SaslMechanism, scram
from spark_kafka_source.net.sasl.logins import PasswordLogin
from spark_kafka_source.net.sasl.scram import Scram
from spark_kafka_source.secret import Secret
from tests.net.sasl.scram_server import ScramServer

LOGIN = PasswordLogin("user", Secret("pencil"))
CANARY = "hunter2-canary"
HASHES = {SaslMechanism.SCRAM_SHA_256.value: "sha256", SaslMechanism.SCRAM_SHA_512.value: "sha512"}


# https://www.rfc-editor.org/rfc/rfc5802#section-5 and https://www.rfc-editor.org/rfc/rfc7677
@pytest.mark.parametrize(
    ("hash_name", "nonce", "server_first", "proof", "server_final"),
    [
        (
            "sha1",
            "fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        (
            "sha256",
            "rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ],
)
def test_the_vectors_of_the_rfcs(
    hash_name: str, nonce: str, server_first: str, proof: str, server_final: str
) -> None:
    client = Scram("SCRAM", hash_name, LOGIN, nonce=nonce)
    assert client.first().decode() == f"n,,n=user,r={nonce}"
    final = client.next(server_first.encode())
    assert final == f"c=biws,{server_first.split(',', 1)[0]},p={proof}".encode()
    assert client.next(server_final.encode()) is None


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(HASHES)),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.booleans(),
)
def test_it_is_let_in_by_a_server_with_the_same_password(
    name: str, username: str, password: str, token_auth: bool
) -> None:
    client = Scram(name, HASHES[name], PasswordLogin(username, Secret(password), token_auth))
    server = ScramServer(username, password, HASHES[name])
    answer = client.next(server.first(client.first()))
    assert client.next(server.final(answer or b"")) is None
    assert server.extensions == ({"tokenauth": "true"} if token_auth else {})


def test_a_name_does_not_end_at_a_comma() -> None:
    client = Scram("SCRAM-SHA-256", "sha256", PasswordLogin("a=b,r=2C", Secret("b")), nonce="n")
    assert client.first() == b"n,,n=a=3Db=2Cr=3D2C,r=n"


def test_names_and_passwords_are_sent_as_they_are_for_kafka_does_not_prepare_them() -> None:
    """SASLprep turns it into "IXa". `ScramFormatter.normalize` of Kafka 4.3 does not change it."""
    odd = "I\u00adX\u00aa"
    client = Scram("SCRAM-SHA-256", "sha256", PasswordLogin(odd, Secret(odd)))
    assert odd.encode() in client.first()
    server = ScramServer(odd, odd)
    assert client.next(server.final(client.next(server.first(client.first())) or b"")) is None


def test_a_wrong_password_is_told_by_name() -> None:
    client = Scram("SCRAM-SHA-256", "sha256", PasswordLogin("user", Secret(CANARY)))
    server = ScramServer("user", "pencil")
    answer = client.next(server.first(client.first()))
    with pytest.raises(AuthenticationError, match=r"SCRAM-SHA-256: .*invalid-proof.*jaas") as told:
        client.next(server.final(answer or b""))
    assert CANARY not in str(told.value)
    assert not told.value.retriable


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    client = Scram("SCRAM-SHA-256", "sha256", LOGIN)
    client.next(ScramServer("user", "pencil").first(client.first()))
    signature = base64.b64encode(b"\0" * 32)
    with pytest.raises(AuthenticationError, match="does not know the password either"):
        client.next(b"v=" + signature)


def test_a_connection_made_anew_does_not_salt_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    login = PasswordLogin("user", Secret("salted once"))

    def authenticate() -> None:
        client, server = Scram("S", "sha256", login), ScramServer("user", "salted once")
        assert client.next(server.final(client.next(server.first(client.first())) or b"")) is None

    authenticate()
    misses = scram._salted_password.cache_info().misses
    authenticate()
    assert scram._salted_password.cache_info().misses == misses
    other = Scram("S", "sha256", PasswordLogin("user", Secret("another")))
    other.next(ScramServer("user", "another").first(other.first()))
    assert scram._salted_password.cache_info().misses == misses + 1


@pytest.mark.parametrize(
    ("server_first", "fault"),
    [
        ("r=ours,s=QSXC,i=4096", "nonce does not begin"),
        ("r=other-nonce,s=QSXC,i=4096", "nonce does not begin"),
        ("r=ours+1,s=QSXC,i=4095", "asks for 4095 iterations"),
        ("r=ours+1,s=QSXC,i=1000001", "asks for 1000001 iterations"),
        ("r=ours+1,s=QSXC,i=99999999999", "message is not SCRAM's"),
        ("r=ours+1,s=QSXC,i=-1", "message is not SCRAM's"),
        ("r=ours+1,s=QSXC,i=٤٠٩٦", "message is not SCRAM's"),
        ("r=ours+1,s=,i=4096", "message is not SCRAM's"),
        ("r=ours+1,s=QSX,i=4096", "message is not SCRAM's"),
        ("r=ours+1,s=Q$XC,i=4096", "message is not SCRAM's"),
        ("m=must-be-known,r=ours+1,s=QSXC,i=4096", "message is not SCRAM's"),
        ("r=ours+1,s=QSXC", "message is not SCRAM's"),
        ("", "message is not SCRAM's"),
        ("e=unknown-user", "answered with unknown-user"),
        ("e=\x1b[31mhunter2", "answered with an unlisted error"),
        ("r=ours" + "1" * 20_000 + ",s=QSXC,i=4096", "a message of 20020 bytes"),
    ],
)
def test_a_first_message_that_is_not_allowed(server_first: str, fault: str) -> None:
    client = Scram("SCRAM-SHA-256", "sha256", LOGIN, nonce="ours")
    client.first()
    with pytest.raises(AuthenticationError, match=fault) as refused:
        client.next(server_first.encode())
    assert "hunter2" not in str(refused.value)


def test_nothing_may_follow_the_end() -> None:
    client, server = Scram("S", "sha256", LOGIN), ScramServer("user", "pencil")
    final = server.final(client.next(server.first(client.first())) or b"")
    assert client.next(final) is None
    with pytest.raises(AuthenticationError):
        client.next(final)


@given(st.binary() | st.from_regex(r"[erv]=[^,]*(,[sip]=[^,]*){0,3}").map(str.encode))
def test_any_challenge_is_refused(challenge: bytes) -> None:
    client = Scram("SCRAM-SHA-256", "sha256", LOGIN, nonce="ours")
    with pytest.raises(AuthenticationError):
        client.next(challenge)
    client.next(b"r=ours+1,s=QSXC,i=4096")
    with pytest.raises(AuthenticationError):
        client.next(challenge)


def test_every_authentication_has_its_own_nonce() -> None:
    assert len({Scram("S", "sha256", LOGIN).first() for _ in range(20)}) == 20
