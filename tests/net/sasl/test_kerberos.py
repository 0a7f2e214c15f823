"""GSSAPI with a fake python-gssapi. Other tests use the real library and real tickets."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import AuthenticationError, SaslSettings
from spark_kafka_source.net.sasl.kerberos import Gssapi
from spark_kafka_source.net.sasl.logins import KerberosLogin
from spark_kafka_source.net.sasl.mechanism import mechanism_for
from spark_kafka_source.options.declaration import Settings


class GSSError(Exception):
    """The error of python-gssapi."""


class Wrapped(NamedTuple):
    message: bytes


class Context:
    """An initiator that completes after the broker's first token."""

    made: dict[str, object]

    def __init__(self, **given: object) -> None:
        Context.made = given
        self.complete = False

    def step(self, token: bytes | None = None) -> bytes | None:
        if token is None:
            return b"ticket"
        if token != b"mutual":
            raise GSSError("Miscellaneous failure: Wrong principal in request")
        self.complete = True
        return None

    def unwrap(self, message: bytes) -> Wrapped:
        if not message.startswith(b"wrapped:"):
            raise GSSError("A token was invalid")
        return Wrapped(message.removeprefix(b"wrapped:"))

    def wrap(self, message: bytes, encrypt: bool) -> Wrapped:
        assert not encrypt
        return Wrapped(b"wrapped:" + message)


@pytest.fixture
def gssapi(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    library = SimpleNamespace(
        SecurityContext=Context,
        Name=lambda text, kind: (text, kind),
        NameType=SimpleNamespace(hostbased_service="service", kerberos_principal="principal"),
        RequirementFlag=SimpleNamespace(mutual_authentication=2, integrity=32),
        Credentials=lambda **given: given,
        exceptions=SimpleNamespace(GSSError=GSSError),
    )
    monkeypatch.setitem(sys.modules, "gssapi", library)
    return library


@pytest.mark.usefixtures("gssapi")
def test_a_whole_conversation() -> None:
    settings = SaslSettings.from_settings(
        Settings({"kafka.sasl.kerberos.service.name": "broker"}), tls=False
    )
    client = mechanism_for(settings, "b1.example.com")
    assert client.name == "GSSAPI"
    assert client.first() == b"ticket"
    assert Context.made == {
        "name": ("broker@b1.example.com", "service"),
        "creds": None,
        "flags": [2, 32],
        "usage": "initiate",
    }
    assert client.next(b"mutual") == b""
    assert client.next(b"wrapped:\x07\x00\x10\x00") == b"wrapped:\x01\x00\x00\x00"
    assert client.next(b"") is None


@pytest.fixture
def keytab(tmp_path: Path) -> str:
    path = tmp_path / "keytab"
    path.touch()
    return str(path)


@pytest.mark.usefixtures("gssapi")
def test_a_keytab_and_a_ticket_cache(keytab: str) -> None:
    Gssapi(KerberosLogin("kafka", "me@REALM", keytab), "b1")
    creds = Context.made["creds"]
    assert isinstance(creds, dict)
    assert creds["name"] == ("me@REALM", "principal")
    assert creds["store"]["client_keytab"] == keytab
    assert creds["store"]["ccache"].startswith("MEMORY:")
    Gssapi(KerberosLogin("kafka", None, None, "/cache"), "b1")
    assert Context.made["creds"] == {
        "name": None,
        "usage": "initiate",
        "store": {"ccache": "/cache"},
    }


@pytest.mark.usefixtures("gssapi")
@pytest.mark.parametrize(
    ("challenges", "fault"),
    [
        ([b"other"], "kafka@b1: Miscellaneous failure: Wrong principal in request. Check the tick"),
        ([b"mutual", b"no"], "A token was invalid"),
        ([b"mutual", b"wrapped:\x01"], "offers layers in 1 bytes"),
        ([b"mutual", b"wrapped:\x06\x00\x00\x00"], "demands a security layer"),
        (
            [b"mutual", b"wrapped:\x01\x00\x00\x00", b"more"],
            "sends more after the end",
        ),
    ],
)
def test_what_a_broker_may_not_say(challenges: list[bytes], fault: str) -> None:
    client = Gssapi(KerberosLogin(), "b1")
    client.first()
    with pytest.raises(AuthenticationError, match=r"^GSSAPI: ") as refused:
        for challenge in challenges:
            client.next(challenge)
    assert fault in str(refused.value)


def test_no_ticket(gssapi: SimpleNamespace, keytab: str) -> None:
    def fail(**given: object) -> None:
        raise GSSError("No Kerberos credentials available")

    gssapi.Credentials = fail
    with pytest.raises(AuthenticationError, match="No Kerberos credentials available") as refused:
        Gssapi(KerberosLogin("kafka", "me@REALM", keytab), "b1")
    assert f"as 'me@REALM' by the keytab {keytab!r}" in str(refused.value)


@pytest.mark.usefixtures("gssapi")
def test_a_keytab_that_cannot_be_read() -> None:
    with pytest.raises(AuthenticationError, match=r"'/nowhere' cannot be read: No such file"):
        Gssapi(KerberosLogin("kafka", "me@REALM", "/nowhere"), "b1")


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigurationError, match="with its extra 'gssapi'"):
        Gssapi(KerberosLogin(), "b1")
