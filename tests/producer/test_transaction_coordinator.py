"""Requests to the coordinators of a transaction, and the meaning of their errors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.client import Cluster, KafkaClient, Retry
from spark_kafka_source.denials import Access
from spark_kafka_source.errors import (
    BrokerError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.producer.errors import ProducerFencedError, TransactionAbortableError
from spark_kafka_source.producer.generation import Generation, generation_of
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.producer.transaction_coordinator import (
    TransactionCoordinator,
    new_producer_id,
)
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from spark_kafka_source.testing.memory import KAFKA_2_1, Action, MemoryBroker
from spark_kafka_source.testing.memory.log import PartitionLog
from spark_kafka_source.testing.memory.transactions import Transaction
from spark_kafka_source.topic_partition import TopicPartition
from tests.client.clock import Clock, deadlines_by
from tests.producer.blocking import BlockingCoordinator
from tests.producer.transactional import write
from tests.protocol.oracle import ask_kafka

pytestmark = pytest.mark.memory(nodes=3)

T0, T1, NOPE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("nope", 0)
ID, GROUP = "x", "g"
NOBODY = Member(GROUP, "", -1)
TIMEOUT_MS = 20_000


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    broker.create_topic("t", 2)
    broker.cluster.transaction_coordinators[ID] = 1
    broker.cluster.coordinators[GROUP] = 2
    return broker


@pytest.fixture
def client(broker: MemoryBroker) -> Iterator[KafkaClient]:
    with KafkaClient(broker.config(), Cluster(Access.WRITE)) as client:
        yield client


@pytest.fixture
def coordinator(client: KafkaClient) -> BlockingCoordinator:
    return BlockingCoordinator(client, ID)


def transaction(broker: MemoryBroker) -> Transaction:
    found: Transaction = broker.cluster.transactions[ID]
    return found


def log(broker: MemoryBroker, where: TopicPartition = T0) -> PartitionLog:
    found = broker.cluster.log(*where)
    assert found is not None
    return found


def asked(broker: MemoryBroker, request_type: type[Request[Any]]) -> list[int]:
    """Return the nodes that got such a request, in order."""
    return [each.node_id for each in broker.seen if isinstance(each.request, request_type)]


# -- the requests of a transaction -----------------------------------------------------------------


def test_each_beginning_has_a_newer_epoch(coordinator: BlockingCoordinator) -> None:
    first, second = (coordinator.init_producer_id(TIMEOUT_MS) for _ in range(2))
    assert second == ProducerId(first.producer_id, first.epoch + 1)


def test_how_long_it_may_be_open_is_the_brokers_to_watch(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    coordinator.init_producer_id(1_234)
    assert transaction(broker).timeout_ms == 1_234


def test_a_producer_goes_on_in_a_new_epoch(coordinator: BlockingCoordinator) -> None:
    first = coordinator.init_producer_id(TIMEOUT_MS)
    second = coordinator.init_producer_id(TIMEOUT_MS, first)
    assert second == ProducerId(first.producer_id, first.epoch + 1)
    coordinator.init_producer_id(TIMEOUT_MS)
    with pytest.raises(ProducerFencedError):
        coordinator.init_producer_id(TIMEOUT_MS, second)


def test_a_transaction_that_is_committed(
    broker: MemoryBroker, client: KafkaClient, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [T1, T0, T0])
    assert write(client, ID, producer, T0, [b"a", b"b"]) == 0
    assert log(broker).last_stable_offset == 0
    coordinator.end(producer, commit=True)
    assert (log(broker).last_stable_offset, log(broker, T1).last_stable_offset) == (3, 1)
    assert not log(broker).aborted
    (request,) = broker.requests(AddPartitionsToTxnRequest)
    assert [each.partitions for each in request.v3_and_below_topics] == [[0, 1]]


def test_a_transaction_that_is_aborted(
    broker: MemoryBroker, client: KafkaClient, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [T0])
    write(client, ID, producer, T0, [b"a"])
    coordinator.end(producer, commit=False)
    assert [(each.first_offset, each.last_offset) for each in log(broker).aborted] == [(0, 1)]


def test_anyone_who_knows_the_producer_may_end_it(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [T0])
    with KafkaClient(broker.config()) as other:
        for _ in range(2):
            BlockingCoordinator(other, ID).end(producer, commit=True)
    assert transaction(broker).state == "CompleteCommit"


def test_offsets_count_once_the_transaction_is_committed(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_offsets(producer, GROUP)
    offsets = {T0: OffsetAndMetadata(5, 7, "why"), T1: OffsetAndMetadata(6)}
    coordinator.commit_offsets(producer, Member(GROUP, "m", -1, "i"), offsets)
    assert GROUP not in broker.cluster.committed
    coordinator.end(producer, commit=True)
    assert broker.cluster.committed[GROUP] == {T0: 5, T1: 6}
    (request,) = broker.requests(TxnOffsetCommitRequest)
    assert (request.member_id, request.generation_id_or_member_epoch) == ("m", -1)
    assert request.group_instance_id == "i"
    (topic,) = request.topics
    first = topic.partitions[0]
    assert (first.committed_leader_epoch, first.committed_metadata) == (7, "why")


def test_each_is_asked_of_whom_it_concerns(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [T0])
    coordinator.add_offsets(producer, GROUP)
    coordinator.commit_offsets(producer, NOBODY, {T0: OffsetAndMetadata(1)})
    coordinator.end(producer, commit=True)
    of_transaction = (
        *(InitProducerIdRequest, AddPartitionsToTxnRequest),
        *(AddOffsetsToTxnRequest, EndTxnRequest),
    )
    assert [asked(broker, each) for each in of_transaction] == [[1]] * 4
    assert asked(broker, TxnOffsetCommitRequest) == [2]
    kinds = [(each.key, each.key_type) for each in broker.requests(FindCoordinatorRequest)]
    assert kinds == [(ID, 1), (GROUP, 0)]


def test_nothing_to_add_is_not_asked_for(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    coordinator.add_partitions(ProducerId(1, 1), [])
    coordinator.commit_offsets(ProducerId(1, 1), NOBODY, {})
    assert not broker.seen


def test_a_broker_that_knows_newer_transactions_is_asked_for_those_of_the_first_generation(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_offsets(producer, GROUP)
    coordinator.commit_offsets(producer, NOBODY, {T0: OffsetAndMetadata(1)})
    coordinator.end(producer, commit=True)
    versions = {type(each.request): each.version for each in broker.seen}
    assert (versions[TxnOffsetCommitRequest], versions[EndTxnRequest]) == (4, 4)


@pytest.mark.java
def test_the_first_generation_ends_where_kafka_says(kafka_jars: list[Path]) -> None:
    newest = "LAST_STABLE_VERSION_BEFORE_TRANSACTION_V2"
    asked = (ProduceRequest, EndTxnRequest, TxnOffsetCommitRequest)
    with ask_kafka(kafka_jars) as oracle:
        theirs = {each: oracle.constant(each.__name__, newest) for each in asked}
    assert theirs == {each: Generation.FIRST.max_version(each) for each in asked}


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({}, Generation.FIRST),
        ({"transaction.version": 1}, Generation.FIRST),
        ({"transaction.version": 2, "group.version": 1}, Generation.SECOND),
        ({"transaction.version": 3}, Generation.SECOND),
    ],
)
def test_the_generation_is_what_the_cluster_has_agreed_on(
    levels: dict[str, int], expected: Generation, broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.features.update(levels)
    assert client.run(generation_of(client)) is expected


def test_a_broker_without_features_has_the_first_generation(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.features["transaction.version"] = 2
    broker.cluster.versions.update(KAFKA_2_1)
    assert client.run(generation_of(client)) is Generation.FIRST


def test_the_second_generation_raises_the_epoch_and_needs_no_announcement(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    coordinator = TransactionCoordinator(client, "t", Generation.SECOND)
    producer = client.run(coordinator.init_producer_id(TIMEOUT_MS))
    for commit in (True, False):
        client.run(coordinator.add_offsets(producer, GROUP))
        client.run(coordinator.commit_offsets(producer, NOBODY, {T0: OffsetAndMetadata(1)}))
        following = client.run(coordinator.end(producer, commit=commit))
        assert following == producer.bumped()
        assert client.run(coordinator.end(producer, commit=commit)) == following  # Once more.
        with pytest.raises(BrokerError, match="INVALID_TXN_STATE"):
            client.run(coordinator.end(producer, commit=not commit))
        producer = following
    assert not broker.requests(AddOffsetsToTxnRequest)
    with pytest.raises(BrokerError, match="INVALID_TXN_STATE"):  # Nothing is in it.
        client.run(coordinator.end(producer, commit=True))


def test_an_old_broker(broker: MemoryBroker, coordinator: BlockingCoordinator) -> None:
    broker.cluster.versions.update(KAFKA_2_1)
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [T0])
    coordinator.add_offsets(producer, GROUP)
    coordinator.commit_offsets(producer, NOBODY, {T0: OffsetAndMetadata(1)})
    with pytest.raises(
        UnsupportedVersionError, match="generation_id_or_member_epoch is set, which version 2"
    ):
        coordinator.commit_offsets(producer, Member(GROUP, "m", 1), {T0: OffsetAndMetadata(2)})
    coordinator.end(producer, commit=True)
    assert broker.cluster.committed[GROUP] == {T0: 1}
    with pytest.raises(UnsupportedVersionError, match="producer_id"):
        coordinator.init_producer_id(TIMEOUT_MS, producer)
    coordinator.init_producer_id(TIMEOUT_MS)
    with pytest.raises(ProducerFencedError, match="INVALID_PRODUCER_EPOCH"):
        coordinator.end(producer, commit=True)


# -- errors with a retry ---------------------------------------------------------------------------


def test_what_a_newcomer_aborts_is_waited_for(
    broker: MemoryBroker, client: KafkaClient, coordinator: BlockingCoordinator
) -> None:
    first = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(first, [T0])
    write(client, ID, first, T0, [b"a"])
    second = coordinator.init_producer_id(TIMEOUT_MS)
    assert second.epoch > first.epoch
    assert len(broker.requests(InitProducerIdRequest)) == 3  # CONCURRENT_TRANSACTIONS at first.
    assert len(log(broker).aborted) == 1
    for _ in range(2):
        with pytest.raises(ProducerFencedError, match="another producer has begun"):
            coordinator.add_partitions(first, [T0])
        with pytest.raises(ProducerFencedError):
            coordinator.add_offsets(first, GROUP)
        with pytest.raises(ProducerFencedError):
            coordinator.commit_offsets(first, NOBODY, {T0: OffsetAndMetadata(1)})
        with pytest.raises(ProducerFencedError):
            coordinator.end(first, commit=True)


def test_the_end_of_the_transaction_before_is_waited_for_in_short_pauses(
    broker: MemoryBroker,
    client: KafkaClient,
    coordinator: BlockingCoordinator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    deadlines_by(clock := Clock(), monkeypatch)
    monkeypatch.setattr(client, "_block", clock.block)
    client._retry = Retry(100, 1_000)
    concurrent = error_named("CONCURRENT_TRANSACTIONS")
    broker.control(AddPartitionsToTxnRequest, concurrent, times=3)
    coordinator.add_partitions(producer, [T0])
    assert len(broker.requests(AddPartitionsToTxnRequest)) == 4
    due = [0.02, 0.04, 0.08]
    assert clock.pauses == [pytest.approx(each, rel=0.21) for each in due]


@pytest.mark.parametrize(
    "name", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"]
)
def test_a_coordinator_that_is_not_ready_is_asked_again(
    broker: MemoryBroker, coordinator: BlockingCoordinator, name: str
) -> None:
    error = error_named(name)
    for request_type in (
        *(InitProducerIdRequest, AddPartitionsToTxnRequest, AddOffsetsToTxnRequest),
        *(TxnOffsetCommitRequest, EndTxnRequest),
    ):
        broker.control(request_type, error)
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [T0])
    coordinator.add_offsets(producer, GROUP)
    coordinator.commit_offsets(producer, NOBODY, {T0: OffsetAndMetadata(1)})
    coordinator.end(producer, commit=True)
    assert broker.cluster.committed[GROUP] == {T0: 1}


def test_a_coordinator_that_has_moved_is_found(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    broker.cluster.transaction_coordinators[ID] = 2
    coordinator.add_partitions(producer, [T0])
    broker.cluster.transaction_coordinators[ID] = 0
    broker.stop(2)
    coordinator.end(producer, commit=True)
    assert asked(broker, AddPartitionsToTxnRequest) == [1, 2]
    assert asked(broker, EndTxnRequest) == [0]


def test_an_end_whose_answer_is_lost_is_asked_for_again(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [T0])

    def lost(_: object) -> Action:
        transaction(broker).end(broker.cluster, commit=True)
        return Action.CLOSE

    broker.control(EndTxnRequest, lost)
    coordinator.end(producer, commit=True)
    assert len(log(broker).batches) == 1


def test_a_topic_that_does_not_appear(coordinator: BlockingCoordinator) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    with pytest.raises(KafkaTimeoutError, match="AddPartitionsToTxn of nope-0 to transactional"):
        coordinator.add_partitions(producer, [T0, NOPE], timeout_ms=200)
    coordinator.add_offsets(producer, GROUP)
    # From here on the group's coordinator is known and connected, and only the topic is missing.
    coordinator.commit_offsets(producer, NOBODY, {T0: OffsetAndMetadata(1)})
    with pytest.raises(KafkaTimeoutError, match="of nope-0 for group 'g' by transactional id 'x'"):
        offsets = {T0: OffsetAndMetadata(1), NOPE: OffsetAndMetadata(1)}
        coordinator.commit_offsets(producer, NOBODY, offsets, timeout_ms=200)


# -- errors without a retry ------------------------------------------------------------------------


def test_the_other_end_says_what_may_have_been(coordinator: BlockingCoordinator) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    with pytest.raises(BrokerError, match="or there is nothing in it"):
        coordinator.end(producer, commit=True)
    coordinator.add_partitions(producer, [T0])
    coordinator.end(producer, commit=False)
    with pytest.raises(BrokerError, match=r"INVALID_TXN_STATE.*it has ended already") as caught:
        coordinator.end(producer, commit=True)
    assert type(caught.value) is BrokerError
    assert "EndTxn (commit) of transactional id 'x'" in str(caught.value)


def test_one_that_never_began(coordinator: BlockingCoordinator) -> None:
    with pytest.raises(BrokerError, match=r"'transactional\.id\.expiration\.ms'") as caught:
        coordinator.end(ProducerId(1, 0), commit=True)
    assert type(caught.value) is BrokerError


def test_too_long_a_time(coordinator: BlockingCoordinator) -> None:
    with pytest.raises(BrokerError, match=r"'kafka\.transaction\.timeout\.ms' is not between"):
        coordinator.init_producer_id(1_000_000)


def answered(*names: str) -> AddPartitionsToTxnResponse:
    """Return a coordinator's answer for the partitions of t, by names of errors."""
    results = [
        AddPartitionsToTxnPartitionResult(partition, error_named(name).code)
        for partition, name in enumerate(names)
    ]
    return AddPartitionsToTxnResponse(0, [AddPartitionsToTxnTopicResult("t", results)])


@pytest.mark.parametrize("other", ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION", "NONE"])
def test_a_topic_that_is_denied_is_named_before_others(
    broker: MemoryBroker, coordinator: BlockingCoordinator, other: str
) -> None:
    broker.control(AddPartitionsToTxnRequest, answered(other, "TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(TransactionAbortableError, match=r"of t-1 to.*needs WRITE on topic 't'"):
        coordinator.add_partitions(ProducerId(1, 0), [T0, T1])


def test_partitions_that_were_left_alone_are_not_added(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    broker.control(AddPartitionsToTxnRequest, answered("NONE", "OPERATION_NOT_ATTEMPTED"))
    with pytest.raises(TransactionAbortableError, match="of t-1 to"):
        coordinator.add_partitions(ProducerId(1, 0), [T0, T1])


def test_partitions_that_were_left_alone_for_what_may_heal_are_asked_for_again(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    healing = answered("OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION")
    broker.control(AddPartitionsToTxnRequest, healing)
    coordinator.add_partitions(producer, [T0, T1])
    assert transaction(broker).partitions == {T0, T1}


def test_offsets_of_a_topic_that_is_denied_lack_the_right_to_read_it(
    broker: MemoryBroker, coordinator: BlockingCoordinator
) -> None:
    broker.control(TxnOffsetCommitRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(TransactionAbortableError, match="needs READ on topic 't'"):
        coordinator.commit_offsets(ProducerId(1, 0), NOBODY, {T0: OffsetAndMetadata(1)})


@pytest.mark.parametrize("name", ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"])
def test_a_member_that_lost_its_partitions_aborts(
    broker: MemoryBroker, coordinator: BlockingCoordinator, name: str
) -> None:
    broker.control(TxnOffsetCommitRequest, error_named(name))
    with pytest.raises(TransactionAbortableError, match="given the partitions to other members"):
        coordinator.commit_offsets(ProducerId(1, 0), NOBODY, {T0: OffsetAndMetadata(1)})


@pytest.mark.parametrize("request_type", [FindCoordinatorRequest, TxnOffsetCommitRequest])
def test_a_group_that_is_denied_costs_the_transaction_alone(
    broker: MemoryBroker,
    coordinator: BlockingCoordinator,
    request_type: type[Request[Any]],
) -> None:
    broker.control(request_type, error_named("GROUP_AUTHORIZATION_FAILED"))
    with pytest.raises(TransactionAbortableError, match="needs READ on group 'g'"):
        coordinator.commit_offsets(ProducerId(1, 0), NOBODY, {T0: OffsetAndMetadata(1)})


@pytest.mark.parametrize("request_type", [FindCoordinatorRequest, InitProducerIdRequest])
def test_a_transactional_id_that_is_denied_costs_the_producer(
    broker: MemoryBroker,
    coordinator: BlockingCoordinator,
    request_type: type[Request[Any]],
) -> None:
    broker.control(request_type, error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="needs WRITE on transactional id 'x'") as caught:
        coordinator.init_producer_id(TIMEOUT_MS)
    assert type(caught.value) is BrokerError


def test_answers_that_say_nothing(broker: MemoryBroker, coordinator: BlockingCoordinator) -> None:
    broker.control(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse())
    with pytest.raises(ProtocolError, match="AddPartitionsToTxn of t-0: the answer leaves it out"):
        coordinator.add_partitions(ProducerId(1, 0), [T0])
    broker.control(TxnOffsetCommitRequest, TxnOffsetCommitResponse())
    with pytest.raises(ProtocolError, match="TxnOffsetCommit of t-0: the answer leaves it out"):
        coordinator.commit_offsets(ProducerId(1, 0), NOBODY, {T0: OffsetAndMetadata(1)})
    broker.control(InitProducerIdRequest, InitProducerIdResponse(0, 0, -1, 0))
    with pytest.raises(ProtocolError, match="no producer id"):
        coordinator.init_producer_id(TIMEOUT_MS)


# -- without transactions --------------------------------------------------------------------------


def test_a_producer_without_transactions_has_an_id_that_no_other_has(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.control(InitProducerIdRequest, error_named("COORDINATOR_LOAD_IN_PROGRESS"))
    first, second = client.run(new_producer_id(client)), client.run(new_producer_id(client))
    assert first.producer_id != second.producer_id
    assert (first.epoch, second.epoch) == (0, 0)
    assert not broker.requests(FindCoordinatorRequest)
    assert {each.transactional_id for each in broker.requests(InitProducerIdRequest)} == {None}


def test_a_producer_that_may_not_be_idempotent_is_told_what_it_lacks(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.control(InitProducerIdRequest, error_named("CLUSTER_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="needs IDEMPOTENT_WRITE on the cluster"):
        client.run(new_producer_id(client))


def test_a_producer_without_transactions_needs_an_id_that_is_one(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.control(InitProducerIdRequest, InitProducerIdResponse(0, 0, 1, -1))
    with pytest.raises(ProtocolError, match="no producer id"):
        client.run(new_producer_id(client))
