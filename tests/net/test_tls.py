"""TLS to a broker: the safety checks, and errors that name the cause and the option."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_kafka_source.errors import ConnectionFailedError, KafkaError, ProtocolError, Remedy
from spark_kafka_source.net import (
    Address,
    Connection,
    ConnectionSettings,
    Deadline,
    RequestTimeoutError,
    SecuritySettings,
    TlsError,
)
from spark_kafka_source.net.tls.context import start_tls
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.sasl import SaslHandshakeRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker, Raw
from tests.consumer.consumers import eventually, longer_and_longer
from tools.certificates import Certified, authority, certified_by
from tools.ports import LOOPBACK, black_hole

MIB = 1024 * 1024


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def secured(**values: str) -> ConnectionSettings:
    """Return settings from `kafka.ssl.*` options, written with underscores."""
    options = {f"kafka.ssl.{name.replace('_', '.')}": value for name, value in values.items()}
    protocol = {"kafka.security.protocol": "SSL"}
    security = SecuritySettings.from_settings(Settings(protocol | options))
    return ConnectionSettings(security=security)


def connect(address: Address, settings: ConnectionSettings) -> Connection:
    return Connection.connect(address, settings, in_time())


@pytest.fixture
def broker(server: Certified, tmp_path: Path) -> Iterator[MemoryBroker]:
    with MemoryBroker(tls=server.server_context(tmp_path)) as broker:
        yield broker


@pytest.fixture
def settings(ca: Certified) -> ConnectionSettings:
    return secured(truststore_certificates=ca.certificate_pem)


@pytest.fixture
def connection(broker: MemoryBroker, settings: ConnectionSettings) -> Iterator[Connection]:
    connection = connect(broker.address(), settings)
    yield connection
    connection.close()


def failure(address: Address, settings: ConnectionSettings) -> TlsError:
    """Return the error of a TLS connection. It is final: there is no retry."""
    with pytest.raises(TlsError) as caught:
        connect(address, settings)
    assert caught.value.remedy is Remedy.NONE
    assert str(address) in str(caught.value)
    return caught.value


@contextmanager
def server_that_says(data: bytes) -> Iterator[Address]:
    """Start a server. It sends `data` to each client, and closes after the client's first bytes."""

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                link, _ = listening.accept()
            except OSError:
                return
            with link:
                link.recv(4096)
                link.sendall(data)

    with socket.create_server((LOOPBACK, 0)) as listening:
        serving = threading.Thread(target=serve, args=(listening,))
        serving.start()
        try:
            yield Address(LOOPBACK, listening.getsockname()[1])
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


# -- TLS that works --------------------------------------------------------------------------------


def test_requests_are_answered_under_tls(connection: Connection, broker: MemoryBroker) -> None:
    assert connection.request(MetadataRequest(topics=[]), in_time()).brokers
    assert connection.usable


def test_large_answers_arrive_whole(connection: Connection, broker: MemoryBroker) -> None:
    records = bytes(range(256)) * (9 * MIB // 256) + b"the end"
    partition = PartitionData(records=records)
    broker.control(
        FetchRequest, FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    )
    response = connection.request(FetchRequest(), in_time())
    assert response.responses[0].partitions[0].records == records
    assert connection.usable


def test_an_idle_connection_that_the_broker_closed_is_not_usable(
    connection: Connection, broker: MemoryBroker
) -> None:
    assert connection.usable
    broker.hang_up(0)
    eventually(lambda: not connection.usable)


@pytest.mark.parametrize("host", ["localhost", "localhost."])
def test_a_name_is_checked_with_a_dot_at_its_end_or_without(
    broker: MemoryBroker,
    settings: ConnectionSettings,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
) -> None:
    target = (socket.AF_INET, socket.SOCK_STREAM, 0, "", tuple(broker.address()))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [target])
    connect(Address(host, 9092), settings).close()


def test_silence_in_the_handshake_ends_with_the_deadline(settings: ConnectionSettings) -> None:
    with black_hole() as address:
        for timeout_ms in longer_and_longer(300):
            with pytest.raises(RequestTimeoutError) as caught:
                Connection.connect(address, settings, Deadline.after_ms(timeout_ms))
            if "starting TLS" in str(caught.value):
                break
    assert "starting TLS" in str(caught.value)


def test_close_wakes_a_thread_that_waits_in_the_handshake(settings: ConnectionSettings) -> None:
    raised: list[KafkaError] = []
    opened = threading.Event()
    opening: list[Connection] = []

    def note(connection: Connection) -> None:
        opening.append(connection)
        opened.set()

    def wait(address: Address) -> None:
        try:
            Connection.connect(address, settings, in_time(), note)
        except KafkaError as error:
            raised.append(error)

    with black_hole() as address:
        waiting = threading.Thread(target=wait, args=(address,))
        waiting.start()
        opened.wait(60)
        while not isinstance(opening[0]._socket._socket, ssl.SSLSocket):
            pass
        opening[0].close()
        waiting.join(60)
    assert not waiting.is_alive()
    assert isinstance(raised[0], ConnectionFailedError)


def test_while_it_closes_nothing_can_go_out_without_tls(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may be about to send. Without TLS the socket would send plain text."""
    shutdown = socket.socket.shutdown
    had_tls = []

    def watched(link: ssl.SSLSocket, how: int) -> None:
        had_tls.append(link.version() is not None)
        shutdown(link, how)

    monkeypatch.setattr(socket.socket, "shutdown", watched)
    connection.close()
    assert had_tls == [True]


def test_a_certificate_in_the_truststore_is_trusted_without_its_authority(
    broker: MemoryBroker, server: Certified
) -> None:
    """Java does the same."""
    settings = secured(truststore_certificates=server.certificate_pem)
    connect(broker.address(), settings).close()


def test_a_client_shows_its_certificate(ca: Certified, server: Certified, tmp_path: Path) -> None:
    me = certified_by(ca)
    settings = secured(
        truststore_certificates=ca.certificate_pem,
        keystore_certificate_chain=me.certificate_pem,
        keystore_key=me.key_pem(),
    )
    with MemoryBroker(tls=server.server_context(tmp_path, trusts=ca)) as broker:
        connection = connect(broker.address(), settings)
        assert connection.request(MetadataRequest(topics=[]), in_time()).brokers
        connection.close()


# -- TLS that fails --------------------------------------------------------------------------------


def test_an_authority_that_is_not_trusted(broker: MemoryBroker) -> None:
    settings = secured(truststore_certificates=authority("another").certificate_pem)
    said = str(failure(broker.address(), settings))
    assert "no authority that is trusted here" in said
    assert "'kafka.ssl.truststore.location'" in said


def test_without_a_truststore_the_systems_authorities_are_trusted(broker: MemoryBroker) -> None:
    assert "no authority that is trusted here" in str(failure(broker.address(), secured()))


def test_a_certificate_that_has_expired(
    ca: Certified, settings: ConnectionSettings, tmp_path: Path
) -> None:
    expired = certified_by(ca, LOOPBACK, days_left=-1)
    with MemoryBroker(tls=expired.server_context(tmp_path)) as broker:
        assert "has expired" in str(failure(broker.address(), settings))


def test_a_certificate_that_is_not_valid_yet(
    ca: Certified, settings: ConnectionSettings, tmp_path: Path
) -> None:
    early = certified_by(ca, LOOPBACK, days_left=20)
    with MemoryBroker(tls=early.server_context(tmp_path)) as broker:
        assert "not valid yet" in str(failure(broker.address(), settings))


@pytest.mark.parametrize(("host", "has"), [(LOOPBACK, "localhost"), ("localhost", LOOPBACK)])
def test_a_certificate_for_another_name(
    ca: Certified, settings: ConnectionSettings, tmp_path: Path, host: str, has: str
) -> None:
    other = certified_by(ca, has)
    with MemoryBroker(tls=other.server_context(tmp_path)) as broker:
        said = str(failure(Address(host, broker.address().port), settings))
    assert "is for another name" in said
    assert "'kafka.ssl.endpoint.identification.algorithm'" in said
    assert host in said


@pytest.mark.parametrize("host", ["", "."])
def test_a_host_that_no_certificate_could_name(settings: ConnectionSettings, host: str) -> None:
    assert settings.security.tls is not None
    link, other = socket.socketpair()
    with link, other, pytest.raises(OSError, match="is not a name that a certificate could have"):
        start_tls(link, settings.security.tls, host)


def test_names_are_not_checked_where_so_set_and_that_is_warned_of_once(
    ca: Certified, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = certified_by(ca, "broker.example.org")
    settings = secured(
        truststore_certificates=ca.certificate_pem, endpoint_identification_algorithm=" "
    )
    with MemoryBroker(tls=other.server_context(tmp_path)) as broker:
        for _ in range(2):
            connect(broker.address(), settings).close()
        without_trust = secured(endpoint_identification_algorithm="")
        assert "no authority" in str(failure(broker.address(), without_trust))
    (warned, _) = [record.getMessage() for record in caplog.records]
    assert "kafka.ssl.endpoint.identification.algorithm" in warned


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_broker_that_demands_a_certificate(
    ca: Certified,
    server: Certified,
    settings: ConnectionSettings,
    tmp_path: Path,
    version: ssl.TLSVersion,
) -> None:
    context = server.server_context(tmp_path, trusts=ca)
    context.maximum_version = version
    with MemoryBroker(tls=context) as broker:
        said = str(failure(broker.address(), settings))
    assert "demands a client certificate" in said
    assert "'kafka.ssl.keystore.location'" in said


def test_a_broker_that_refuses_our_certificate(
    ca: Certified, server: Certified, tmp_path: Path
) -> None:
    stranger = certified_by(authority("another"))
    settings = secured(
        truststore_certificates=ca.certificate_pem,
        keystore_certificate_chain=stranger.certificate_pem,
        keystore_key=stranger.key_pem(),
    )
    with MemoryBroker(tls=server.server_context(tmp_path, trusts=ca)) as broker:
        said = str(failure(broker.address(), settings))
    assert "refuses the client's certificate" in said


def test_no_version_in_common(server: Certified, ca: Certified, tmp_path: Path) -> None:
    context = server.server_context(tmp_path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    settings = secured(truststore_certificates=ca.certificate_pem, enabled_protocols="TLSv1.3")
    with MemoryBroker(tls=context) as broker:
        said = str(failure(broker.address(), settings))
    assert "no version of TLS" in said
    assert "'kafka.ssl.enabled.protocols'" in said


def test_no_cipher_suite_in_common(server: Certified, ca: Certified, tmp_path: Path) -> None:
    context = server.server_context(tmp_path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    settings = secured(
        truststore_certificates=ca.certificate_pem,
        cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    )
    with MemoryBroker(tls=context) as broker:
        said = str(failure(broker.address(), settings))
    assert "no cipher suite" in said
    assert "'kafka.ssl.cipher.suites'" in said


@pytest.mark.parametrize("data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_a_server_that_answers_tls_with_something_else(
    settings: ConnectionSettings, data: bytes
) -> None:
    with server_that_says(data) as address:
        said = str(failure(address, settings))
    assert "does not speak TLS" in said
    assert "'kafka.security.protocol'" in said


def test_a_broker_that_hangs_up_on_tls_and_answers_without(settings: ConnectionSettings) -> None:
    """Kafka reads the TLS greeting as a request of 369 million bytes, and closes the connection."""
    with MemoryBroker() as broker:
        said = str(failure(broker.address(), settings))
        assert "does not speak TLS" in said
        assert [type(seen.request).__name__ for seen in broker.seen] == ["ApiVersionsRequest"]


def test_a_broker_that_dies_in_the_handshake_may_come_back(settings: ConnectionSettings) -> None:
    with server_that_says(b"") as address, pytest.raises(ConnectionFailedError) as caught:
        connect(address, settings)
    assert caught.value.remedy is Remedy.REFRESH_METADATA


def test_a_tls_listener_that_is_spoken_to_without() -> None:
    """Kafka's listener sends an alert. Other servers close the connection."""
    alert = bytes.fromhex("15030300020250")
    for data, error_type, said in (
        (alert, ProtocolError, r"looks like TLS.*kafka\.security\.protocol"),
        (b"", ConnectionFailedError, r"expect TLS \('kafka.security.protocol"),
    ):
        with server_that_says(data) as address, pytest.raises(error_type, match=said):
            connect(address, ConnectionSettings())


def test_a_listener_that_hangs_up_is_asked_whether_it_expects_sasl() -> None:
    """The client asks once, before the first answer. The listener may only be restarting."""
    with MemoryBroker() as broker:
        connection = connect(broker.address(), ConnectionSettings())
        broker.control(MetadataRequest, Action.CLOSE, times=2)
        with pytest.raises(ConnectionFailedError, match="closed the connection while waiting"):
            connection.request(MetadataRequest(), in_time())
        assert len(broker.requests(SaslHandshakeRequest)) == 1
        connection = connect(broker.address(), ConnectionSettings())
        connection.request(ApiVersionsRequest(), in_time())
        with pytest.raises(ConnectionFailedError):
            connection.request(MetadataRequest(), in_time())
        assert len(broker.requests(SaslHandshakeRequest)) == 1


def test_http_inside_of_tls(broker: MemoryBroker, connection: Connection) -> None:
    broker.control(MetadataRequest, Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(ProtocolError, match="looks like an HTTP server"):
        connection.request(MetadataRequest(), in_time())
