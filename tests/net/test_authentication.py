"""SASL on a connection: authentication after TLS, and again before the session expires."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.errors import BrokerError, ConnectionFailedError, Remedy, error_named
from spark_kafka_source.net import (
    AuthenticationError,
    Connection,
    ConnectionSettings,
    Deadline,
    SecuritySettings,
)
from spark_kafka_source.net.sasl import SaslSettings, mechanism
from spark_kafka_source.net.sasl.mechanism import Mechanism
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from spark_kafka_source.testing.memory import KAFKA_2_1, Action, MemoryBroker
from spark_kafka_source.testing.memory.cluster import RefusedError
from tests.net.session_clock import sessions_by_own_clock
from tools.certificates import Certified

USER, PASSWORD = "alice", "canary"


def plain(said: list[bytes]) -> bytes | None:
    """Judge a client by PLAIN, as a broker does."""
    if said != [f"\0{USER}\0{PASSWORD}".encode()]:
        raise RefusedError("Authentication failed: Invalid username or password")
    return None


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def settings(protocol: str = "SASL_PLAINTEXT", **options: str) -> ConnectionSettings:
    given = {"sasl_mechanism": "PLAIN", "sasl_username": USER, "sasl_password": PASSWORD} | options
    named = {f"kafka.{name.replace('_', '.')}": value for name, value in given.items()}
    values = {"kafka.security.protocol": protocol} | named
    return ConnectionSettings(security=SecuritySettings.from_settings(Settings(values)))


def connect(broker: MemoryBroker, given: ConnectionSettings | None = None) -> Connection:
    return Connection.connect(broker.address(), given or settings(), in_time())


def refusal(broker: MemoryBroker, given: ConnectionSettings | None = None) -> AuthenticationError:
    with pytest.raises(AuthenticationError) as caught:
        connect(broker, given)
    assert caught.value.remedy is Remedy.NONE
    assert str(broker.address()) in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        assert PASSWORD not in f"{error!r}{error}"
        error = error.__cause__ or error.__context__
    return caught.value


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    broker.cluster.mechanisms["PLAIN"] = plain
    return broker


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the clock of sessions. Nothing else uses it."""
    return sessions_by_own_clock(monkeypatch)


def asked(broker: MemoryBroker) -> list[str]:
    return [type(seen.request).__name__.removesuffix("Request") for seen in broker.seen]


@pytest.mark.parametrize("request_type", [SaslHandshakeRequest, SaslAuthenticateRequest])
def test_a_broker_that_hangs_up_meanwhile_is_not_suspected_of_tls(
    broker: MemoryBroker, request_type: type[Request[Any]]
) -> None:
    """The broker has answered ApiVersions, so the security protocol is right."""
    broker.control(request_type, Action.CLOSE)
    with pytest.raises(ConnectionFailedError, match="closed the connection") as caught:
        connect(broker)
    assert "does this listener expect" not in str(caught.value)


# -- the first authentication ----------------------------------------------------------------------


def test_versions_come_first_then_who_we_are_then_all_else(broker: MemoryBroker) -> None:
    connection = connect(broker)
    assert connection.request(MetadataRequest(topics=[]), in_time()).brokers
    connection.close()
    assert asked(broker) == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata"]
    assert [seen.version for seen in broker.seen[1:3]] == [1, 2]


def test_the_oldest_broker_is_authenticated_with_as_well() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker:
        broker.cluster.mechanisms["PLAIN"] = plain
        connect(broker).close()
        assert broker.seen[-1].version == 0


def test_under_tls(ca: Certified, server: Certified, tmp_path: Path) -> None:
    given = settings("SASL_SSL", ssl_truststore_certificates=ca.certificate_pem)
    with MemoryBroker(tls=server.server_context(tmp_path)) as broker:
        broker.cluster.mechanisms["PLAIN"] = plain
        connection = connect(broker, given)
        assert connection.request(MetadataRequest(topics=[]), in_time()).brokers
        connection.close()


class Talkative:
    """A mechanism with three messages."""

    name = "TALK"

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def first(self) -> bytes:
        return b"1"

    def next(self, challenge: bytes) -> bytes | None:
        self.heard.append(challenge)
        return b"%d" % (len(self.heard) + 1) if len(self.heard) < 3 else None


def test_messages_go_to_and_fro_until_the_mechanism_is_satisfied(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    talkative = Talkative()

    def made(_: SaslSettings, host: str) -> Mechanism:
        assert host == broker.address().host
        return talkative

    monkeypatch.setattr(mechanism, "mechanism_for", made)
    broker.cluster.mechanisms["TALK"] = lambda said: (b"go", b"on", None)[len(said) - 1]
    connect(broker).close()
    assert talkative.heard == [b"go", b"on", b""]
    assert [each.auth_bytes for each in broker.requests(SaslAuthenticateRequest)] == [
        b"1", b"2", b"3",
    ]  # fmt: skip


def test_a_broker_that_would_go_on_for_ever_is_left(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Patient(Talkative):
        def next(self, challenge: bytes) -> bytes:
            return b"more"

    monkeypatch.setattr(mechanism, "mechanism_for", lambda *_: Patient())
    broker.cluster.mechanisms["TALK"] = lambda _: b"more"
    assert "not complete after" in str(refusal(broker))


# -- refused ---------------------------------------------------------------------------------------


def test_a_wrong_password(broker: MemoryBroker) -> None:
    said = str(refusal(broker, settings(sasl_password=f"another {PASSWORD}")))
    assert "Invalid username or password" in said
    assert "kafka.sasl." in said


def test_a_mechanism_that_the_broker_does_not_have(broker: MemoryBroker) -> None:
    said = str(refusal(broker, settings(sasl_mechanism="SCRAM-SHA-512")))
    assert "but PLAIN" in said
    assert "'kafka.sasl.mechanism'" in said


def test_a_listener_without_sasl() -> None:
    with MemoryBroker() as broker:
        said = str(refusal(broker))
    assert "does not use SASL" in said
    assert "'kafka.security.protocol'" in said


def test_a_listener_with_sasl_that_is_spoken_to_without(broker: MemoryBroker) -> None:
    connection = connect(broker, ConnectionSettings())
    with pytest.raises(AuthenticationError, match="listener expects it, with PLAIN") as caught:
        connection.request(MetadataRequest(), in_time())
    assert "'kafka.security.protocol' to SASL_PLAINTEXT" in str(caught.value)
    assert caught.value.remedy is Remedy.NONE


@pytest.mark.parametrize(
    ("request_type", "response_type"),
    [
        (SaslHandshakeRequest, SaslHandshakeResponse),
        (SaslAuthenticateRequest, SaslAuthenticateResponse),
    ],
)
def test_an_error_that_is_not_about_us_keeps_its_remedy(
    broker: MemoryBroker,
    request_type: type[SaslHandshakeRequest | SaslAuthenticateRequest],
    response_type: type[SaslHandshakeResponse | SaslAuthenticateResponse],
) -> None:
    error = error_named("COORDINATOR_LOAD_IN_PROGRESS")
    broker.control(request_type, response_type(error.code))
    with pytest.raises(BrokerError) as caught:
        connect(broker)
    assert caught.value.remedy is Remedy.RETRY


def test_a_long_story_is_cut(broker: MemoryBroker) -> None:
    failed = error_named("SASL_AUTHENTICATION_FAILED").code
    broker.control(SaslAuthenticateRequest, SaslAuthenticateResponse(failed, "x" * 30_000))
    assert len(str(refusal(broker))) < 1_000
    unsupported = error_named("UNSUPPORTED_SASL_MECHANISM").code
    broker.control(SaslHandshakeRequest, SaslHandshakeResponse(unsupported, ["y" * 30_000]))
    assert len(str(refusal(broker))) < 1_000


def test_a_connection_that_failed_is_closed(broker: MemoryBroker) -> None:
    opened: list[Connection] = []
    given = settings(sasl_password="another")
    with pytest.raises(AuthenticationError):
        Connection.connect(broker.address(), given, in_time(), opened.append)
    assert opened[0].closed


# -- re-authentication (KIP-368) -------------------------------------------------------------------

AGAIN = ["SaslHandshake", "SaslAuthenticate"]


@pytest.fixture
def session(broker: MemoryBroker, clock: SimpleNamespace) -> Iterator[Connection]:
    """Return a connection with a session of ten seconds. The broker forgets earlier requests."""
    broker.cluster.session_lifetime_ms = 10_000
    connection = connect(broker)
    broker.forget()
    yield connection
    connection.close()


def ask(connection: Connection) -> None:
    connection.request(MetadataRequest(topics=[]), in_time())


def test_a_session_is_renewed_before_it_ends_and_not_sooner(
    broker: MemoryBroker, session: Connection, clock: SimpleNamespace
) -> None:
    clock.now += 8.4
    ask(session)
    assert asked(broker) == ["Metadata"]
    clock.now += 0.2
    ask(session)
    ask(session)
    assert asked(broker) == ["Metadata", *AGAIN, "Metadata", "Metadata"]
    clock.now += 8.6
    ask(session)
    assert asked(broker)[5:] == [*AGAIN, "Metadata"]
    assert broker.accepted() == 1


def test_nothing_is_said_between_a_request_and_its_answer(
    broker: MemoryBroker, session: Connection, clock: SimpleNamespace
) -> None:
    session.send(MetadataRequest(topics=[]), in_time())
    clock.now += 9
    session.send(MetadataRequest(topics=[]), in_time())
    for _ in range(2):
        assert isinstance(session.receive(in_time()), MetadataResponse)
    ask(session)
    assert asked(broker) == ["Metadata", "Metadata", *AGAIN, "Metadata"]


def test_a_connection_whose_session_is_over_is_not_usable(
    session: Connection, clock: SimpleNamespace
) -> None:
    clock.now += 9.9
    assert session.usable
    clock.now += 0.2
    assert not session.usable


def test_a_session_too_short_to_be_renewed_ends(
    broker: MemoryBroker, clock: SimpleNamespace
) -> None:
    """Within a second of the last renewal, Kafka takes the next one for an ordinary request."""
    broker.cluster.session_lifetime_ms = 1_100
    connection = connect(broker)
    broker.forget()
    clock.now += 0.99
    ask(connection)
    assert asked(broker) == ["Metadata"]
    broker.cluster.session_lifetime_ms = 900
    clock.now += 0.02
    ask(connection)
    assert asked(broker) == ["Metadata", *AGAIN, "Metadata"]
    clock.now += 0.91
    assert not connection.usable
    connection.close()


@pytest.mark.parametrize("lifetime_ms", [0, -1, 2**63 - 1])
def test_a_session_without_an_end(
    broker: MemoryBroker, clock: SimpleNamespace, lifetime_ms: int
) -> None:
    broker.cluster.session_lifetime_ms = lifetime_ms
    connection = connect(broker)
    broker.forget()
    clock.now += 86_400 * 365
    assert connection.usable
    ask(connection)
    assert asked(broker) == ["Metadata"]
    connection.close()


def test_credentials_that_are_not_good_any_more(
    broker: MemoryBroker, session: Connection, clock: SimpleNamespace
) -> None:
    def withdrawn(said: list[bytes]) -> bytes | None:
        raise RefusedError("the password has expired")

    broker.cluster.mechanisms["PLAIN"] = withdrawn
    clock.now += 9
    with pytest.raises(AuthenticationError, match="the password has expired"):
        ask(session)
    assert session.closed


def test_a_broker_that_dies_meanwhile(
    broker: MemoryBroker, session: Connection, clock: SimpleNamespace
) -> None:
    broker.control(SaslHandshakeRequest, Action.CLOSE)
    clock.now += 9
    with pytest.raises(ConnectionFailedError):
        ask(session)
    assert session.closed
