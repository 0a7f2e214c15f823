"""The producer's identity on the brokers, and the sequences of its batches."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, ClosedError, error_named
from spark_kafka_source.net import Conversations, Deadline, keep_asking
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.producer.batch import PartitionQueue
from spark_kafka_source.producer.identity import Idempotent, Identity
from spark_kafka_source.producer.sequences import MAX_EPOCH, next_sequence
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest
from spark_kafka_source.testing.memory import ONE_TRY, MemoryBroker
from tests.producer.blocking import end_pauses, is_pausing, settle
from tests.producer.writing import T0, T1

DENIED = error_named("CLUSTER_AUTHORIZATION_FAILED")


@pytest.fixture
def identity(broker: MemoryBroker) -> Iterator[Idempotent]:
    """An identity with a pause of an hour after each failure."""
    with KafkaClient(broker.config(**ONE_TRY)) as client:
        # The time for the first contact would end with a further try.
        client.run(client.topics([], Deadline.after_ms(30_000)))
        yield Idempotent(client)


@pytest.fixture
def conversations(identity: Idempotent) -> Iterator[Conversations]:
    conversations = Conversations()
    conversations.begin(keep_asking(identity.ask, identity._client.pause_seconds))
    yield conversations
    conversations.close()


def stepped(
    identity: Idempotent, conversations: Conversations, queues: list[PartitionQueue]
) -> None:
    """Let the identity ask for what the queues need, and take the answer."""
    identity.note_waiting(queues)
    settle(conversations)


@pytest.mark.parametrize(
    ("sequence", "count", "expected"),
    [(0, 1, 1), ((1 << 31) - 1, 1, 0), ((1 << 31) - 3, 5, 2), (0, (1 << 31) - 1, (1 << 31) - 1)],
)
def test_after_the_last_sequence_comes_the_first(sequence: int, count: int, expected: int) -> None:
    assert next_sequence(sequence, count) == expected


def test_the_last_epoch_has_no_next_one() -> None:
    assert ProducerId(7, 0).bumped() == ProducerId(7, 1)
    assert ProducerId(7, MAX_EPOCH - 1).bumped() == ProducerId(7, MAX_EPOCH)
    assert ProducerId(7, MAX_EPOCH).bumped() is None


def test_an_id_is_asked_for_once_and_only_where_there_is_something_to_write(
    broker: MemoryBroker, identity: Idempotent, conversations: Conversations
) -> None:
    queue = PartitionQueue(T0)
    stepped(identity, conversations, [])
    assert not broker.requests(InitProducerIdRequest)
    assert not identity.may_send(T0)
    stepped(identity, conversations, [queue])
    stepped(identity, conversations, [queue])
    assert identity.may_send(T0)
    assert identity.producer_of(queue) == ProducerId(1_000, 0)
    assert len(broker.requests(InitProducerIdRequest)) == 1


def test_a_partition_whose_sequences_are_lost_goes_on_with_an_epoch_that_others_come_to_later(
    identity: Idempotent, conversations: Conversations
) -> None:
    one, other = PartitionQueue(T0), PartitionQueue(T1)
    stepped(identity, conversations, [one, other])
    for queue in (one, other):
        identity.producer_of(queue)
        queue.next_sequence, queue.is_known = 40, True
    identity.renumber(one)
    identity.renumber(one)  # A second batch of the queue fails in the same way.
    assert identity.producer_of(one) == ProducerId(1_000, 1)
    assert (one.next_sequence, one.is_known) == (0, False)
    assert identity.producer_of(other) == ProducerId(1_000, 0)
    assert (other.next_sequence, other.is_known) == (40, True)
    identity.renumber(other)
    assert identity.producer_of(other) == ProducerId(1_000, 1)
    identity.renumber(one)
    assert identity.producer_of(one) == ProducerId(1_000, 2)


def test_after_the_last_epoch_another_id_is_asked_for(
    broker: MemoryBroker, identity: Idempotent, conversations: Conversations
) -> None:
    queue = PartitionQueue(T0)
    stepped(identity, conversations, [queue])
    identity._producer = ProducerId(1_000, MAX_EPOCH)
    assert identity.producer_of(queue) == ProducerId(1_000, MAX_EPOCH)
    identity.renumber(queue)
    assert not identity.may_send(T0)
    stepped(identity, conversations, [queue])
    assert identity.producer_of(queue) == ProducerId(1_001, 0)


def test_a_denial_is_told_once_and_asked_about_again_after_a_pause(
    broker: MemoryBroker, identity: Idempotent, conversations: Conversations
) -> None:
    broker.control(InitProducerIdRequest, DENIED)
    queue = PartitionQueue(T0)
    stepped(identity, conversations, [queue])
    refusal = identity.refusal()
    assert isinstance(refusal, BrokerError)
    assert refusal.error == DENIED
    stepped(identity, conversations, [queue])
    assert identity.refusal() is None
    assert is_pausing(conversations)
    assert len(broker.requests(InitProducerIdRequest)) == 1


def test_what_may_heal_refuses_nothing_and_is_asked_again_after_a_pause(
    broker: MemoryBroker, identity: Idempotent, conversations: Conversations
) -> None:
    broker.control(InitProducerIdRequest, error_named("COORDINATOR_LOAD_IN_PROGRESS"))
    queue = PartitionQueue(T0)
    stepped(identity, conversations, [queue])
    assert identity.refusal() is None
    assert not identity.may_send(T0)
    end_pauses(conversations)
    stepped(identity, conversations, [queue])
    assert identity.may_send(T0)


def test_without_idempotence_there_is_nothing_to_ask() -> None:
    identity, queue = Identity(), PartitionQueue(T0)
    identity.note_waiting([queue])
    identity.renumber(queue)
    identity.failed(ClosedError("it is lost"), was_sent=True)
    assert identity.ask() is None
    assert identity.may_send(T0)
    assert identity.producer_of(queue) is None
    assert identity.refusal() is None
    assert not identity.may_renumber
    assert queue.most_in_flight > 5
