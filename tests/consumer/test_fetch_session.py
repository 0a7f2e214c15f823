"""A fetch session without a broker: what is asked, and answers that do not fit."""

from uuid import UUID

import pytest

from spark_kafka_source.consumer.fetch_session import FetchSession, Wanted
from spark_kafka_source.errors import BrokerError, ProtocolError, error_named
from spark_kafka_source.protocol import (
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import T0, T1

ID, OTHER = UUID(int=1), UUID(int=2)


def wanted(offset: int, where: TopicPartition = T0, topic_id: UUID = ID) -> Wanted:
    return Wanted(topic_id, FetchPartition(partition=where.partition, fetch_offset=offset))


def answer(*partitions: int, session_id: int = 9, topic_id: UUID = ID) -> FetchResponse:
    data = [PartitionData(partition) for partition in partitions]
    return FetchResponse(
        session_id=session_id, responses=[FetchableTopicResponse("", topic_id, data)]
    )


def begun() -> FetchSession:
    session = FetchSession()
    session.request({T0: wanted(0), T1: wanted(0, T1)})
    session.answered(answer(0, 1))
    return session


def test_a_topic_made_anew_takes_the_place_of_the_old_one() -> None:
    asked = begun().request({T0: wanted(0, topic_id=OTHER), T1: wanted(0, T1)})
    assert [(each.topic_id, each.partitions) for each in asked.forgotten_topics_data] == [(ID, [0])]
    assert [each.topic_id for each in asked.topics] == [OTHER]
    assert (asked.session_id, asked.session_epoch) == (9, 1)


def test_epochs_begin_again_after_the_last() -> None:
    session = begun()
    session._epoch = 2**31 - 1
    session.request({T0: wanted(0)})
    session.answered(answer())
    assert session.request({T0: wanted(0)}).session_epoch == 1


def test_an_answer_that_leaves_a_partition_out_of_a_full_fetch() -> None:
    session = FetchSession()
    session.request({T0: wanted(0), T1: wanted(0, T1)})
    with pytest.raises(ProtocolError, match=r"t-1: the answer leaves it out"):
        session.answered(answer(0))
    assert session.request({T0: wanted(0)}).session_epoch == 0


@pytest.mark.parametrize("strange", [answer(5), answer(0, topic_id=OTHER)])
def test_an_answer_that_nobody_asked_for(strange: FetchResponse) -> None:
    session = begun()
    session.request({T0: wanted(0), T1: wanted(0, T1)})
    with pytest.raises(ProtocolError, match="not asked for"):
        session.answered(strange)
    assert session.request({T0: wanted(0)}).session_epoch == 0


def test_a_broker_that_ends_a_session_of_its_own_accord() -> None:
    """A session id of 0 says that the next request must be whole again."""
    session = begun()
    session.request({T0: wanted(1), T1: wanted(0, T1)})
    session.answered(answer(0, session_id=0))
    asked = session.request({T0: wanted(1), T1: wanted(0, T1)})
    assert (asked.session_id, asked.session_epoch) == (0, 0)
    assert not session.is_open


@pytest.mark.parametrize(
    ("name", "session_id"),
    [("FETCH_SESSION_ID_NOT_FOUND", 0), ("INVALID_FETCH_SESSION_EPOCH", 9)],
)
def test_after_an_error_all_is_asked_for(name: str, session_id: int) -> None:
    session = begun()
    session.request({T0: wanted(0), T1: wanted(0, T1)})
    with pytest.raises(BrokerError, match=name):
        session.answered(FetchResponse(error_code=error_named(name).code))
    asked = session.request({T0: wanted(0), T1: wanted(0, T1)})
    assert (asked.session_id, asked.session_epoch) == (session_id, 0)
    assert len(asked.topics[0].partitions) == 2


def test_a_goodbye() -> None:
    asked = begun().closing()
    assert (asked.session_id, asked.session_epoch, asked.topics) == (9, -1, [])
