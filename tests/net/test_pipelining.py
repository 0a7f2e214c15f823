"""Several requests on one connection: each gets its answer, or the connection's error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.errors import (
    ConnectionFailedError,
    KafkaError,
    LocalError,
    ProtocolError,
    UnsupportedVersionError,
)
from spark_kafka_source.net import (
    Awaited,
    Connection,
    ConnectionSettings,
    Deadline,
    RequestTimeoutError,
    SecuritySettings,
    readable,
)
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from spark_kafka_source.records import Record, encode_batch
from spark_kafka_source.testing.memory import Action, MemoryBroker, Raw
from tools.certificates import Certified

MIB = 1 << 20


@pytest.fixture(params=["plain", "tls"])
def broker(
    request: pytest.FixtureRequest, server: Certified, tmp_path: Path
) -> Iterator[MemoryBroker]:
    tls = server.server_context(tmp_path) if request.param == "tls" else None
    with MemoryBroker(tls=tls) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
def connection(
    broker: MemoryBroker, ca: Certified, request: pytest.FixtureRequest
) -> Iterator[Connection]:
    settings = ConnectionSettings(send_buffer_bytes=128 * 1024)
    if "tls" in request.node.name:
        options = {
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": ca.certificate_pem,
        }
        security = SecuritySettings.from_settings(Settings(options))
        settings = ConnectionSettings(send_buffer_bytes=128 * 1024, security=security)
    connection = Connection.connect(broker.address(), settings, in_time())
    yield connection
    connection.close()


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def produce(size: int = 10, acks: int = -1) -> ProduceRequest:
    batch = encode_batch([Record(value=bytes(size))])
    topic = TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])
    return ProduceRequest(None, acks, 30_000, [topic])


def advanced(connection: Connection, *awaited: Awaited[Any]) -> None:
    """Advance the connection until all of these requests are done."""
    for each in awaited:
        while not connection.advance(each, in_time()):
            pass


def offset_of(awaited: Awaited[Any]) -> int:
    response: Any = awaited.response
    (partition,) = response.responses[0].partition_responses
    found: int = partition.base_offset
    return found


def test_each_request_gets_its_own_answer_whichever_is_asked_about(
    broker: MemoryBroker, connection: Connection
) -> None:
    held = broker.hold(ProduceRequest)
    first = connection.begin(produce(), max_version=12)
    second = connection.begin(FindCoordinatorRequest(key="g"), max_version=3)
    third = connection.begin(MetadataRequest(topics=[]))
    fourth = connection.begin(produce(), max_version=12)
    assert connection.in_flight == 4
    in_any_order: list[Awaited[Any]] = [fourth, third, second, first]
    assert not any(connection.advance(each, None) for each in in_any_order)
    held.release()
    advanced(connection, third)
    assert isinstance(second.response, FindCoordinatorResponse)
    assert isinstance(third.response, MetadataResponse)
    assert connection.advance(first, None)
    advanced(connection, fourth)
    assert (offset_of(first), offset_of(fourth)) == (0, 1)
    assert connection.in_flight == 0
    assert connection.usable


def test_no_more_are_in_flight_than_may_be(broker: MemoryBroker, connection: Connection) -> None:
    held = broker.hold(MetadataRequest)
    awaited = []
    for number in range(5):
        assert connection.takes(5), number
        awaited.append(connection.begin(MetadataRequest(topics=[])))
    assert not connection.takes(5)
    assert connection.takes(6)
    assert not connection.usable
    held.release()
    advanced(connection, awaited[0])
    assert connection.takes(5)
    advanced(connection, *awaited)
    assert connection.usable


def test_requests_go_out_as_far_as_the_broker_reads_and_the_rest_later(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.cluster.max_message_bytes = 1 << 30
    held = broker.hold(ProduceRequest)
    first = connection.begin(produce(), max_version=12)
    # More than all buffers up to the broker hold.
    awaited = [connection.begin(produce(3 * MIB), max_version=12) for _ in range(4)]
    assert connection.has_unsent
    assert not connection.advance(awaited[-1], None)
    assert not connection.advance(first, None)
    held.release()
    advanced(connection, *awaited)
    assert [offset_of(each) for each in (first, *awaited)] == [0, 1, 2, 3, 4]
    assert connection.usable


def test_an_answer_is_read_while_a_request_waits_to_go_out(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.cluster.max_message_bytes = 1 << 30
    first = connection.begin(MetadataRequest(topics=[]))
    held = broker.hold(ProduceRequest)
    second = connection.begin(produce(), max_version=12)
    third = connection.begin(produce(8 * MIB), max_version=12)
    assert connection.has_unsent
    advanced(connection, first)
    assert connection.has_unsent
    held.release()
    advanced(connection, third, second)


def test_without_an_answer_a_request_is_over_once_it_is_sent(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.cluster.max_message_bytes = 1 << 30
    small = connection.begin(produce(acks=0), max_version=12)
    assert connection.advance(small, None)
    assert connection.in_flight == 0
    held = broker.hold(ProduceRequest)
    answered = connection.begin(produce(), max_version=12)
    large = connection.begin(produce(8 * MIB, acks=0), max_version=12)
    behind = connection.begin(produce(acks=0), max_version=12)
    assert connection.in_flight == 1
    assert not connection.advance(large, None)
    assert not connection.advance(behind, None)
    held.release()
    advanced(connection, behind)
    assert connection.advance(large, None)
    advanced(connection, answered)
    broker.wait_for(ProduceRequest, 4)
    assert large.response is None


@pytest.mark.parametrize(
    "answer",
    [Action.CLOSE, Raw(b"\0\0", close=True), Raw(b"\0\0\1\0half", close=True)],
    ids=["at once", "in mid-size", "in mid-frame"],
)
def test_a_connection_that_is_cut_fails_all_that_are_in_flight_on_it_alike(
    broker: MemoryBroker, connection: Connection, answer: Any
) -> None:
    held = broker.hold(MetadataRequest, then=answer)
    awaited = [connection.begin(MetadataRequest(topics=[])) for _ in range(3)]
    held.release()
    errors = []
    for each in reversed(awaited):
        with pytest.raises(ConnectionFailedError) as caught:
            advanced(connection, each)
        errors.append(caught.value)
    assert len({id(each) for each in errors}) == 1
    assert connection.closed
    assert not connection.takes(5)


def test_what_was_answered_before_the_cut_counts(
    broker: MemoryBroker, connection: Connection
) -> None:
    held = broker.hold(MetadataRequest)
    broker.control(MetadataRequest, Raw(b"\0\0\1\0half", close=True))
    awaited = [connection.begin(MetadataRequest(topics=[])) for _ in range(3)]
    held.release()
    with pytest.raises(ConnectionFailedError):
        advanced(connection, awaited[2])
    assert connection.advance(awaited[0], None)
    assert isinstance(awaited[0].response, MetadataResponse)
    with pytest.raises(ConnectionFailedError):
        connection.advance(awaited[1], None)


def test_an_answer_out_of_step_fails_all(broker: MemoryBroker, connection: Connection) -> None:
    broker.control(MetadataRequest, Raw(b"\0\0\0\10" + b"\x7f\0\0\0\0\0\0\0"))
    awaited = [connection.begin(MetadataRequest(topics=[])) for _ in range(2)]
    for each in awaited:
        with pytest.raises(ProtocolError, match="correlation id"):
            advanced(connection, each)


def test_an_answer_to_nothing_ends_the_connection(
    broker: MemoryBroker, connection: Connection
) -> None:
    once = connection.begin(MetadataRequest(topics=[]))
    advanced(connection, once)
    broker.control(ProduceRequest, Raw(b"\0\0\0\4\0\0\0\0"))
    sent = connection.begin(produce(acks=0), max_version=12)
    advanced(connection, sent)
    asked = connection.begin(MetadataRequest(topics=[]))
    with pytest.raises(ProtocolError):
        advanced(connection, asked)


def test_a_connection_that_is_given_up_says_why_to_all_and_takes_nothing(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.hold(MetadataRequest)
    awaited = [connection.begin(MetadataRequest(topics=[])) for _ in range(2)]
    error = connection.give_up("timed out waiting for an answer")
    assert str(error) == f"{broker.address()}: timed out waiting for an answer"
    for each in awaited:
        with pytest.raises(RequestTimeoutError) as caught:
            connection.advance(each, None)
        assert caught.value is error
    assert not connection.takes(5)
    with pytest.raises(KafkaError):
        connection.begin(MetadataRequest(topics=[]))


@pytest.mark.parametrize("error", [UnsupportedVersionError, LocalError])
def test_a_request_that_cannot_be_said_harms_no_other(
    broker: MemoryBroker, connection: Connection, error: type[Exception]
) -> None:
    first = connection.begin(MetadataRequest(topics=[]))
    with pytest.raises(error):
        if error is UnsupportedVersionError:
            connection.begin(produce(), max_version=0)
        else:
            connection.begin(ProduceRequest("x" * 40_000, -1, 1 << 40), max_version=12)
    second = connection.begin(MetadataRequest(topics=[]))
    advanced(connection, second, first)
    assert connection.usable


class Waiting:
    """A waiter on a connection's socket."""

    def __init__(self, connection: Connection) -> None:
        self.fileno = connection.fileno
        self._connection = connection

    @property
    def has_unsent(self) -> bool:
        return self._connection.has_unsent


def test_all_that_share_a_socket_are_told_of_it(
    broker: MemoryBroker, connection: Connection
) -> None:
    waiting = [Waiting(connection) for _ in range(3)]
    held = broker.hold(MetadataRequest)
    awaited = connection.begin(MetadataRequest(topics=[]))
    assert readable(waiting, Deadline.after_ms(1)) == []
    held.release()
    assert readable(waiting, in_time()) == waiting
    advanced(connection, awaited)
    assert readable(waiting, Deadline.after_ms(1)) == []


def test_what_is_still_to_be_sent_is_waited_for_too(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.cluster.max_message_bytes = 1 << 30
    waiting = [Waiting(connection)]
    held = broker.hold(ProduceRequest)
    awaited = [connection.begin(produce(size), max_version=12) for size in (10, 8 * MIB)]
    while readable(waiting, Deadline.after_ms(50)):  # The kernel may still have space.
        connection.advance(awaited[-1], None)
    assert connection.has_unsent
    held.release()
    while not connection.advance(awaited[-1], None):
        assert readable(waiting, in_time())
    assert not connection.has_unsent
