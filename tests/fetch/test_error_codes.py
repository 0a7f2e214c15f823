"""All error codes of Kafka as answers of all APIs. None is ignored.

The client either retries after exactly the lookup of the error's remedy, or raises a typed error
that names the code.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    ERRORS,
    BrokerError,
    ErrorCode,
    KafkaError,
    Remedy,
    error_code,
)
from spark_kafka_source.fetch import (
    FetchConfig,
    OffsetAndEpoch,
    OffsetOutOfRangeError,
    OffsetRange,
    RangeReader,
    epoch_end_offsets,
    latest_offsets,
)
from spark_kafka_source.groups import commit_offsets, committed_offsets
from spark_kafka_source.net import Conversation
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest, OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.records import to_arrow
from spark_kafka_source.testing.memory import ONE_TRY, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
END = OffsetAndEpoch(3, leader_epoch=0)
UNLISTED = error_code(999)
CODES = [error for error in ERRORS.values() if error.code] + [UNLISTED]
Call = Callable[[KafkaClient], object]


def read(client: KafkaClient) -> int:
    reader = RangeReader(client, [OffsetRange(T0, 0, 3)], FetchConfig())
    return sum(to_arrow(chunk).num_rows for chunk in reader.chunks())


def running(question: Callable[[KafkaClient], Conversation[object]]) -> Call:
    return lambda client: client.run(question(client))


CALLS: dict[type[Request[Any]], tuple[Call, object]] = {
    FetchRequest: (read, 3),
    ListOffsetsRequest: (running(lambda client: latest_offsets(client, [T0])), {T0: END}),
    OffsetForLeaderEpochRequest: (
        running(lambda client: epoch_end_offsets(client, {T0: 0})),
        {T0: 3},
    ),
    MetadataRequest: (running(lambda client: latest_offsets(client, [T0])), {T0: END}),
    FindCoordinatorRequest: (running(lambda client: committed_offsets(client, "g", [T0])), {T0: 2}),
    OffsetFetchRequest: (running(lambda client: committed_offsets(client, "g", [T0])), {T0: 2}),
    OffsetCommitRequest: (running(lambda client: commit_offsets(client, "g", {T0: 2})), None),
}
ONCE = {(OffsetCommitRequest, "UNKNOWN_SERVER_ERROR")}
"""Errors after which the same request is tried again once."""
OF_LEADERS = (FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest)
"""Requests that are tried again after UNKNOWN_SERVER_ERROR: remote storage may have failed."""
NOTHING = {(OffsetFetchRequest, "GROUP_ID_NOT_FOUND")}
"""Errors that say that there is nothing."""
LOOKED_UP: dict[Remedy, set[type[Request[Any]]]] = {
    Remedy.RETRY: set(),
    Remedy.REFRESH_METADATA: {MetadataRequest},
    Remedy.FIND_COORDINATOR: {FindCoordinatorRequest},
}


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        (log,) = broker.create_topic("t")
        log.append(b"a", b"b", b"c")
        yield broker


@pytest.fixture
def broker(shared_broker: MemoryBroker) -> MemoryBroker:
    shared_broker.forget()
    shared_broker.cluster.committed["g"] = {T0: 2}
    return shared_broker


@pytest.mark.parametrize("request_type", CALLS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("error", CODES, ids=str)
def test_every_code_is_tried_again_or_raised(
    broker: MemoryBroker, client: KafkaClient, request_type: type[Request[Any]], error: ErrorCode
) -> None:
    call, expected = CALLS[request_type]
    broker.control(request_type, error)
    if (request_type, error.name) in ONCE:
        assert call(client) == expected
    elif (request_type, error.name) in NOTHING:
        assert call(client) == {}
    elif request_type in OF_LEADERS and error.name == "UNKNOWN_SERVER_ERROR":
        assert call(client) == expected
        assert len(broker.requests(request_type)) == 2
    elif error.retriable:
        assert call(client) == expected
        assert_looked_up(broker, request_type, error)
    else:
        # While lost offsets are looked up, the pause keeps the reader from another fetch.
        with (
            KafkaClient(broker.config(**ONE_TRY)) as once,
            pytest.raises((BrokerError, OffsetOutOfRangeError)) as caught,
        ):
            call(once)
        assert_named(caught.value, error)
        assert len(broker.requests(request_type)) == 1


def assert_looked_up(
    broker: MemoryBroker, request_type: type[Request[Any]], error: ErrorCode
) -> None:
    """Check for the remedy's lookup between both requests, if the request depends on the lookup."""
    asked = [type(seen.request) for seen in broker.seen]
    assert asked.count(request_type) == 2
    first = asked.index(request_type)
    between = set(asked[first + 1 : asked.index(request_type, first + 1)])
    by_group = request_type in (OffsetCommitRequest, OffsetFetchRequest)
    if by_group and error.remedy is not Remedy.RETRY:
        assert between == {FindCoordinatorRequest}
    elif request_type in OF_LEADERS:
        assert between == LOOKED_UP[error.remedy] - {FindCoordinatorRequest}
    else:
        assert between == set()


def assert_named(caught: KafkaError, error: ErrorCode) -> None:
    if isinstance(caught, OffsetOutOfRangeError):
        assert error.name == "OFFSET_OUT_OF_RANGE"
        caught = caught.__cause__  # type: ignore[assignment]  # `raise … from` a BrokerError
    assert isinstance(caught, BrokerError)
    assert caught.error == error
    assert str(error) in str(caught)


@pytest.mark.parametrize("error", CODES, ids=str)
@pytest.mark.parametrize("response_type", [FetchResponse, MetadataResponse])
def test_every_code_of_a_whole_answer_likewise(
    broker: MemoryBroker, client: KafkaClient, response_type: Any, error: ErrorCode
) -> None:
    """Fetch has such codes since v7, and Metadata since v13."""
    request_type = FetchRequest if response_type is FetchResponse else MetadataRequest
    broker.control(request_type, response_type(error_code=error.code))
    if error.retriable or (response_type is MetadataResponse and error.code == 129):
        assert read(client) == 3
        assert len(broker.requests(request_type)) == 2
    else:
        with pytest.raises((BrokerError, OffsetOutOfRangeError)) as caught:
            read(client)
        assert_named(caught.value, error)
