"""A fetch session with one broker: its requests and the checks of its answers."""

from uuid import UUID

import pytest

from spark_kafka_source.errors import BrokerError, ProtocolError, error_named
from spark_kafka_source.fetch.request import PartitionFetch
from spark_kafka_source.fetch.session import FetchSession
from spark_kafka_source.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.topic_partition import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDS = {"a": UUID(int=1), "b": UUID(int=2)}


def wanted(topic_partition: TopicPartition, offset: int = 0, topic_id: int = 0) -> PartitionFetch:
    of = UUID(int=topic_id) if topic_id else IDS[topic_partition.topic]
    return PartitionFetch(
        of, FetchPartition(partition=topic_partition.partition, fetch_offset=offset)
    )


def answer(
    *partitions: TopicPartition, session_id: int = 7, throttle_time_ms: int = 0
) -> FetchResponse:
    """Return an answer with topic ids, as from version 13 on."""
    responses = [
        FetchableTopicResponse("", IDS[each.topic], [PartitionData(each.partition)])
        for each in partitions
    ]
    return FetchResponse(throttle_time_ms, session_id=session_id, responses=responses)


def asked(session: FetchSession, *partitions: TopicPartition, offset: int = 0) -> list[str]:
    """Return the next request's partitions and offsets. Dropped partitions have a "-"."""
    request = session.request({each: wanted(each, offset) for each in partitions})
    named = [
        f"{topic.topic}-{each.partition}@{each.fetch_offset}"
        for topic in request.topics
        for each in topic.partitions
    ]
    dropped = [
        f"-{topic.topic}-{number}"
        for topic in request.forgotten_topics_data
        for number in topic.partitions
    ]
    return [*named, *dropped]


def open_session(*partitions: TopicPartition) -> FetchSession:
    session = FetchSession()
    session.request({each: wanted(each) for each in partitions})
    assert session.answered(answer(*partitions)).keys() == set(partitions)
    return session


def test_first_all_is_asked_for_then_what_has_changed() -> None:
    session = open_session(A0, A1, B0)
    assert asked(session, A0, A1, B0) == []
    session.answered(answer())
    assert asked(session, A0, A1, B0, offset=1) == ["a-0@1", "a-1@1", "b-0@1"]
    session.answered(answer(A0))
    assert asked(session, A0, offset=1) == ["-a-1", "-b-0"]
    session.answered(answer())
    assert asked(session, A0, B0, offset=1) == ["b-0@1"]


def test_what_a_request_without_an_answer_had_is_asked_for_again() -> None:
    """A Ctrl-C may keep it from going out. If it was sent, the broker refuses its epoch."""
    session = open_session(A0, A1)
    assert asked(session, A0, offset=1) == ["a-0@1", "-a-1"]
    assert asked(session, A0, offset=1) == ["a-0@1", "-a-1"]
    session.answered(answer(A0))
    assert asked(session, A0, offset=1) == []


def test_epochs_count_up_and_begin_again_at_one() -> None:
    session = open_session(A0)
    assert session.request({A0: wanted(A0)}).session_epoch == 1
    session.answered(answer())
    assert session.request({A0: wanted(A0)}).session_epoch == 2
    session._epoch = 2**31 - 1
    session.answered(answer())
    assert session.request({A0: wanted(A0)}).session_epoch == 1


def test_a_broker_that_keeps_no_session_is_told_all_each_time() -> None:
    session = FetchSession()
    for _ in range(2):
        request = session.request({A0: wanted(A0)})
        assert (request.session_id, request.session_epoch, len(request.topics)) == (0, 0, 1)
        session.answered(answer(A0, session_id=0))
    assert not session.is_open


def test_a_topic_made_anew_takes_the_place_of_the_old_one() -> None:
    session = open_session(A0)
    request = session.request({A0: wanted(A0, topic_id=9)})
    assert [topic.topic_id for topic in request.topics] == [UUID(int=9)]
    assert [topic.topic_id for topic in request.forgotten_topics_data] == [IDS["a"]]


@pytest.mark.parametrize(
    ("name", "session_id"),
    [
        ("FETCH_SESSION_ID_NOT_FOUND", 0),
        ("INVALID_FETCH_SESSION_EPOCH", 7),  # So the broker drops its session.
        ("FETCH_SESSION_TOPIC_ID_ERROR", 7),
    ],
)
def test_after_an_error_of_the_session_all_is_asked_for_anew(name: str, session_id: int) -> None:
    session = open_session(A0, A1)
    session.request({A0: wanted(A0), A1: wanted(A1)})
    with pytest.raises(BrokerError, match=name):
        session.answered(FetchResponse(error_code=error_named(name).code))
    request = session.request({A0: wanted(A0), A1: wanted(A1)})
    assert (request.session_id, request.session_epoch) == (session_id, 0)
    assert [len(topic.partitions) for topic in request.topics] == [2]


def test_over_a_quota_nothing_is_answered_and_nothing_lost() -> None:
    session = FetchSession()
    session.request({A0: wanted(A0)})
    assert session.answered(FetchResponse(throttle_time_ms=50)) == {}
    assert asked(session, A0) == ["a-0@0"]
    session.answered(answer(A0))
    assert asked(session, A0, offset=1) == ["a-0@1"]
    assert session.answered(answer(throttle_time_ms=50)) == {}
    assert asked(session, A0, offset=1) == []


def test_a_partition_that_was_not_asked_for_is_an_error() -> None:
    session = open_session(A0)
    session.request({A0: wanted(A0)})
    with pytest.raises(ProtocolError, match=r"partition 0 of topic .*which was not asked for"):
        session.answered(answer(B0))
    assert asked(session, A0) == ["a-0@0"]


def test_a_partition_that_a_full_answer_leaves_out_is_an_error() -> None:
    session = FetchSession()
    session.request({A0: wanted(A0), A1: wanted(A1)})
    with pytest.raises(ProtocolError, match="Fetch of a-1: the answer leaves it out"):
        session.answered(answer(A0))


def test_closing_forgets_all() -> None:
    session = open_session(A0)
    request = session.closing()
    assert (request.session_id, request.session_epoch, request.topics) == (7, -1, [])


def test_a_broker_that_ends_a_session_of_its_own_accord_is_told_all() -> None:
    session = open_session(A0, A1)
    session.request({A0: wanted(A0, 1), A1: wanted(A1)})
    session.answered(answer(A0, session_id=0))
    request = session.request({A0: wanted(A0, 1), A1: wanted(A1)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert [len(topic.partitions) for topic in request.topics] == [2]
