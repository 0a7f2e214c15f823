"""Connecting: all addresses of a name, API versions, and servers that are no broker."""

import socket

import pytest

from spark_kafka_source.errors import (
    BrokerError,
    ConnectionFailedError,
    ProtocolError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.net import (
    Address,
    Connection,
    ConnectionSettings,
    Deadline,
    Identity,
    RequestTimeoutError,
)
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.protocol import OtherServerError, Versions
from spark_kafka_source.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing.memory import KAFKA_2_1, NEWEST, Action, MemoryBroker, Raw
from tools.ports import LOOPBACK, black_hole, refused_port

UNSUPPORTED_VERSION = error_named("UNSUPPORTED_VERSION")
IMPATIENT = ConnectionSettings(socket_connection_setup_timeout_ms=50)


def connect(
    address: Address,
    settings: ConnectionSettings | None = None,
    history: BrokerHistory | None = None,
    identity: Identity | None = None,
) -> Connection:
    return Connection.connect(
        address,
        settings or ConnectionSettings(),
        Deadline.after_ms(30_000),
        history=history,
        identity=identity,
    )


def name_stands_for(monkeypatch: pytest.MonkeyPatch, *targets: tuple[str, int]) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", target) for target in targets]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def asked_versions(broker: MemoryBroker) -> list[int]:
    return [seen.version for seen in broker.seen if isinstance(seen.request, ApiVersionsRequest)]


def test_a_connection_speaks_what_both_sides_speak(broker: MemoryBroker) -> None:
    connection = connect(broker.address())
    assert connection.supports(FetchRequest, NEWEST[FetchRequest.KEY].highest)
    assert connection.usable
    assert asked_versions(broker) == [4]
    connection.close()
    assert not connection.usable


def test_a_broker_that_lacks_our_version_is_asked_in_its_own() -> None:
    """KIP-511."""
    with MemoryBroker(versions=KAFKA_2_1) as broker:
        connection = connect(broker.address())
        assert asked_versions(broker) == [4, 2]
        assert connection.supports(FetchRequest, 10)
        assert not connection.supports(FetchRequest, 11)
        connection.close()


def test_what_a_broker_speaks_is_asked_for_in_its_own_version_from_then_on() -> None:
    history = BrokerHistory()
    with MemoryBroker(versions=KAFKA_2_1) as broker:
        for _ in range(2):
            connect(broker.address(), history=history).close()
        assert asked_versions(broker) == [4, 2, 2]


def test_a_broker_that_hangs_up_is_asked_in_another_version(broker: MemoryBroker) -> None:
    """A broker may not know the version. One that starts hangs up, too, and is soon asked anew."""
    history = BrokerHistory()
    broker.control(ApiVersionsRequest, Action.CLOSE, times=4)
    for _ in range(4):
        with pytest.raises(ConnectionFailedError):
            connect(broker.address(), history=history)
    assert asked_versions(broker) == [4, 3, 0, 4]
    for _ in range(2):
        connection = connect(broker.address(), history=history)
        assert connection.supports(FetchRequest, NEWEST[FetchRequest.KEY].highest)
        connection.close()
    # It knows version 4. Before a login, Kafka hangs up on a second question, so it is not asked.
    assert asked_versions(broker)[4:] == [3, 3]


def test_a_hang_up_does_not_end_the_checks_of_an_address(broker: MemoryBroker) -> None:
    """KIP-1242. Brokers hang up at a restart, and then addresses may lead elsewhere."""
    broker.cluster.cluster_id = "ours"
    history, right = BrokerHistory(), Identity("ours", 0)
    broker.control(ApiVersionsRequest, Action.CLOSE)
    with pytest.raises(ConnectionFailedError):
        connect(broker.address(), history=history, identity=right)
    for _ in range(2):
        connect(broker.address(), history=history, identity=right).close()
    assert asked_versions(broker) == [5, 3, 5]


def test_a_version_that_is_refused_for_good_is_not_kept(broker: MemoryBroker) -> None:
    history = BrokerHistory()
    history.agreed(broker.address(), 0)
    own_range = ApiVersion(ApiVersionsRequest.KEY, 1, 4)
    refusal = ApiVersionsResponse(UNSUPPORTED_VERSION.code, [own_range])
    broker.control(ApiVersionsRequest, refusal)
    with pytest.raises(UnsupportedVersionError):
        connect(broker.address(), history=history)
    connect(broker.address(), history=history).close()
    assert asked_versions(broker) == [0, 4]


@pytest.mark.parametrize("said", ["00230000000100", "0023", "00237fffffff"])
def test_an_answer_that_cannot_be_read_refuses_the_version(broker: MemoryBroker, said: str) -> None:
    def answer(request: ApiVersionsRequest) -> Raw | Action:
        seen = len(asked_versions(broker))
        if seen >= 3:
            return Action.HANDLE
        body = bytes.fromhex(f"{seen - 1:08x}" + said)
        return Raw(len(body).to_bytes(4, "big") + body)

    broker.control(ApiVersionsRequest, answer, times=None)
    connection = connect(broker.address())
    assert asked_versions(broker)[:3] == [4, 3, 2]
    assert connection.supports(FetchRequest, NEWEST[FetchRequest.KEY].highest)
    connection.close()


def test_a_broker_that_does_not_say_its_versions_is_asked_in_the_oldest(
    broker: MemoryBroker,
) -> None:
    """Brokers before KIP-511 list no versions after UNSUPPORTED_VERSION."""
    broker.control(ApiVersionsRequest, ApiVersionsResponse(UNSUPPORTED_VERSION.code))
    connect(broker.address()).close()
    assert asked_versions(broker) == [4, 0]


def test_a_broker_that_refuses_all_versions_is_not_asked_for_ever(broker: MemoryBroker) -> None:
    own_range = ApiVersion(ApiVersionsRequest.KEY, 0, 4)
    refusal = ApiVersionsResponse(UNSUPPORTED_VERSION.code, [own_range])
    broker.control(ApiVersionsRequest, refusal, times=None)
    with pytest.raises(UnsupportedVersionError, match="refused version 0"):
        connect(broker.address())
    assert asked_versions(broker) == [4, 3, 2, 1, 0]


def test_an_error_in_place_of_versions_is_raised(broker: MemoryBroker) -> None:
    broker.control(ApiVersionsRequest, error_named("CLUSTER_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        connect(broker.address())


def test_a_request_without_a_common_version_leaves_the_connection_as_it_was() -> None:
    with MemoryBroker(versions={FetchRequest.KEY: Versions(0, 3)}) as broker:
        connection = connect(broker.address())
        with pytest.raises(UnsupportedVersionError, match=r"Fetch.*4-18.*0-3.*Kafka 2\.1"):
            connection.request(FetchRequest(), Deadline.after_ms(30_000))
        assert connection.usable
        connection.close()


def test_every_address_of_a_name_is_tried(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused_port() as refused:
        name_stands_for(monkeypatch, (LOOPBACK, refused), (LOOPBACK, broker.address().port))
        connection = connect(Address("kafka.example.org", 9092))
    assert connection.usable
    connection.close()


def test_a_refusal_names_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused_port() as refused:
        name_stands_for(monkeypatch, (LOOPBACK, refused), ("127.0.0.2", refused))
        with pytest.raises(ConnectionFailedError) as caught:
            connect(Address("kafka.example.org", 9092))
    assert str(caught.value) == (
        "kafka.example.org:9092 (127.0.0.1: Connection refused, 127.0.0.2: Connection refused)"
    )


def test_an_address_of_an_unknown_kind_is_a_failure_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An example: IPv6 is disabled, but the name has an IPv6 address."""
    found = [(socket.AF_INET, 1234, 5678, "", (LOOPBACK, 9092))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(ConnectionFailedError, match=r"127\.0\.0\.1: "):
        connect(Address("kafka.example.org", 9092))


@pytest.mark.parametrize(
    "address",
    [
        Address("no-such-host.invalid", 9092),
        Address("", 9092),
        Address("\0", 9092),
        Address("x" * 100 + ".example.org", 9092),
        Address(LOOPBACK, -1),
        Address(LOOPBACK, 0),
        Address(LOOPBACK, 0x7FFFFFFF),
    ],
)
def test_an_address_that_a_broker_may_claim_but_nobody_can_reach(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    if address.host.endswith(".invalid"):  # Asking a real name server would be slow.

        def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ConnectionFailedError):
        connect(address)


@pytest.mark.parametrize("port", [-1, 0, 65_536, 1 << 30])
def test_a_port_that_is_none_is_named(port: int) -> None:
    """Brokers advertise 32 bits. The system would use the last 16."""
    with pytest.raises(ConnectionFailedError, match=f"{port} is not a port number"):
        connect(Address(LOOPBACK, port))


def test_a_name_is_resolved_anew_each_time(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address("kafka.example.org", 9092)
    with refused_port() as refused:
        name_stands_for(monkeypatch, (LOOPBACK, refused))
        with pytest.raises(ConnectionFailedError):
            connect(address)
    name_stands_for(monkeypatch, (LOOPBACK, broker.address().port))
    connect(address).close()


def test_a_black_hole_is_given_up_on() -> None:
    with black_hole() as address, pytest.raises(RequestTimeoutError, match="timed out") as caught:
        connect(address, IMPATIENT)
    assert str(address) in str(caught.value)


def test_a_deadline_that_is_past_is_a_timeout_too(broker: MemoryBroker) -> None:
    with pytest.raises(RequestTimeoutError):
        Connection.connect(broker.address(), ConnectionSettings(), Deadline.after_ms(0))


def test_a_broker_that_hangs_up_at_once(broker: MemoryBroker) -> None:
    broker.control(ApiVersionsRequest, Action.CLOSE)
    with pytest.raises(ConnectionFailedError, match="closed the connection"):
        connect(broker.address())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "looks like an HTTP server"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS; set 'kafka.security.protocol' to SSL, or to SASL"),
        (b"\x16\x03\x03\x00\x7a\x02", "looks like TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "looks like an SSH server; see 'kafka.bootstrap.servers'"),
        (b"220 mail.example.org\r\n", "an answer of 842149920 bytes is announced"),
        (b"\xff\xff\xff\xff", "an answer of -1 bytes is announced"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x07\x00\x00\x00\x00", "correlation id is 7, expected 0"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00", "ApiVersionsResponse v4"),
    ],
)
def test_another_server_on_the_port_is_named(
    broker: MemoryBroker, answer: bytes, said: str
) -> None:
    broker.control(ApiVersionsRequest, Raw(answer))
    with pytest.raises(ProtocolError, match=said) as caught:
        connect(broker.address())
    assert str(broker.address()) in str(caught.value)
    assert isinstance(caught.value, OtherServerError) == ("looks like" in str(caught.value))


def test_options_of_the_socket_are_set(broker: MemoryBroker) -> None:
    settings = ConnectionSettings(receive_buffer_bytes=64 * 1024, send_buffer_bytes=64 * 1024)
    connection = connect(broker.address(), settings)
    assert connection.request(MetadataRequest(topics=[]), Deadline.after_ms(30_000)).brokers
    connection.close()
