"""A connection in use: answers in order, silence, half frames, hang-ups, floods, `close`."""

import sys
import threading
from collections.abc import Iterator

import pytest

from spark_kafka_source.errors import ConnectionFailedError, KafkaError, ProtocolError
from spark_kafka_source.net import Connection, ConnectionSettings, Deadline, RequestTimeoutError
from spark_kafka_source.net.framed_socket import FramedSocket
from spark_kafka_source.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.testing.memory import Action, Answer, MemoryBroker, Raw
from tests.consumer.consumers import eventually
from tests.traced import traced

MIB = 1024 * 1024
SOON_MS = 50


@pytest.fixture
def connection(broker: MemoryBroker) -> Iterator[Connection]:
    connection = Connection.connect(broker.address(), ConnectionSettings(), in_time())
    yield connection
    connection.close()


def in_time() -> Deadline:
    return Deadline.after_ms(30_000)


def soon() -> Deadline:
    return Deadline.after_ms(SOON_MS)


def test_answers_come_in_the_order_of_the_requests(connection: Connection) -> None:
    connection.send(MetadataRequest(topics=[]), in_time())
    connection.send(FindCoordinatorRequest(key="g"), in_time(), max_version=3)
    assert not connection.usable
    assert isinstance(connection.receive(in_time()), MetadataResponse)
    assert isinstance(connection.receive(in_time()), FindCoordinatorResponse)
    assert connection.usable


def test_an_answer_larger_than_a_step_of_memory_arrives_whole(
    broker: MemoryBroker, connection: Connection
) -> None:
    records = bytes(range(256)) * (9 * MIB // 256) + b"the end"
    broker.control(
        FetchRequest,
        FetchResponse(
            responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])]
        ),
    )
    response = connection.request(FetchRequest(), in_time())
    assert response.responses[0].partitions[0].records == records


@pytest.mark.parametrize(
    "answer",
    [Action.SILENCE, Raw(b"\x00\x00"), Raw(b"\x00\x00\x01\x00half a frame")],
    ids=["silence", "half a size", "half a frame"],
)
def test_silence_ends_with_the_deadline(
    broker: MemoryBroker, connection: Connection, answer: Answer
) -> None:
    broker.control(MetadataRequest, answer)
    with pytest.raises(RequestTimeoutError, match="timed out waiting for an answer") as caught:
        connection.request(MetadataRequest(), soon())
    assert str(broker.address()) in str(caught.value)
    assert connection.closed


@pytest.mark.parametrize(
    "answer", [Action.CLOSE, Raw(b"\x00\x00", close=True), Raw(b"\x00\x00\x01\x00half", close=True)]
)
def test_a_broker_that_hangs_up_is_noticed(
    broker: MemoryBroker, connection: Connection, answer: Answer
) -> None:
    broker.control(MetadataRequest, answer)
    with pytest.raises(ConnectionFailedError, match="closed the connection"):
        connection.request(MetadataRequest(), in_time())
    assert connection.closed


def test_an_idle_connection_that_the_broker_closed_is_not_usable(
    broker: MemoryBroker, connection: Connection
) -> None:
    assert connection.usable
    broker.hang_up(0)
    eventually(lambda: not connection.usable)


def test_a_connection_is_idle_too_long_by_its_own_clock(broker: MemoryBroker) -> None:
    settings = ConnectionSettings(connections_max_idle_ms=0)
    connection = Connection.connect(broker.address(), settings, in_time())
    assert not connection.usable
    connection.close()


def test_a_connection_that_failed_once_stays_closed(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.control(MetadataRequest, Action.SILENCE)
    with pytest.raises(RequestTimeoutError):
        connection.request(MetadataRequest(), soon())
    for _ in range(2):
        with pytest.raises(ConnectionFailedError, match="the connection is closed"):
            connection.request(MetadataRequest(), in_time())
    # There is no request if the time was up before the send.
    assert len(broker.requests(MetadataRequest)) <= 1


def test_a_flood_is_refused_before_memory_is_taken(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.control(MetadataRequest, Raw((0x7FFFFFFF).to_bytes(4)))
    with (
        traced() as memory,
        pytest.raises(ProtocolError, match="an answer of 2147483647 bytes is announced"),
    ):
        connection.request(MetadataRequest(), in_time())
    assert memory.peak_bytes < MIB
    assert connection.closed


def test_memory_is_taken_as_bytes_come_in_whatever_the_size_says(
    broker: MemoryBroker, connection: Connection
) -> None:
    broker.control(MetadataRequest, Raw((200 * MIB).to_bytes(4) + bytes(1000), close=True))
    with traced() as memory, pytest.raises(ConnectionFailedError):
        connection.request(MetadataRequest(), in_time())
    assert memory.peak_bytes < 16 * MIB


def test_close_wakes_a_thread_that_waits_for_an_answer(
    broker: MemoryBroker, connection: Connection
) -> None:
    raised: list[KafkaError] = []

    def wait() -> None:
        try:
            connection.request(MetadataRequest(), in_time())
        except KafkaError as error:
            raised.append(error)

    broker.control(MetadataRequest, Action.SILENCE)
    waiting = threading.Thread(target=wait)
    waiting.start()
    broker.wait_for(MetadataRequest)
    while sys._current_frames()[waiting.ident or 0].f_code is not FramedSocket.receive.__code__:
        pass  # The thread has sent, but does not wait yet.
    connection.close()
    waiting.join(60)
    assert not waiting.is_alive()
    assert isinstance(raised[0], ConnectionFailedError)


def test_close_may_be_repeated(connection: Connection) -> None:
    connection.close()
    connection.close()
    assert connection.closed
