"""A group's committed offsets, by a member and by a client that is no member."""

import re

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    KafkaTimeoutError,
    ProtocolError,
    error_named,
)
from spark_kafka_source.groups import (
    CommitFailedError,
    Member,
    OffsetAndMetadata,
    commit_offsets,
    committed,
    committed_offsets,
)
from spark_kafka_source.net import ConnectionSettings
from spark_kafka_source.protocol import Versions
from spark_kafka_source.protocol.messages.describe_configs import DescribeConfigsRequest
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from spark_kafka_source.testing.memory import KAFKA_2_1, ONE_TRY, Action, MemoryBroker
from spark_kafka_source.testing.memory.consumer_coordinator import ConsumerGroup, ConsumerMember
from spark_kafka_source.topic_partition import TopicPartition

pytestmark = pytest.mark.memory(nodes=3)

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture(autouse=True)
def topics(broker: MemoryBroker) -> None:
    broker.create_topic("t", 2)
    broker.create_topic("u")
    broker.cluster.coordinators["g"] = 2


def test_what_is_committed_is_read_back(broker: MemoryBroker, client: KafkaClient) -> None:
    client.run(commit_offsets(client, "g", {T0: 5, U0: 0}))
    assert client.run(committed_offsets(client, "g", [T0, T1, U0])) == {T0: 5, U0: 0}
    assert client.run(committed_offsets(client, "other", [T0])) == {}
    client.run(commit_offsets(client, "g", {T0: 6}))
    assert broker.cluster.committed["g"] == {T0: 6, U0: 0}


def test_it_is_the_coordinator_that_is_asked(broker: MemoryBroker, client: KafkaClient) -> None:
    client.run(commit_offsets(client, "g", {T0: 5}))
    client.run(committed_offsets(client, "g", [T0]))
    asked = [s.node_id for s in broker.seen if type(s.request) is not FindCoordinatorRequest]
    assert asked[-2:] == [2, 2]
    assert len(broker.requests(FindCoordinatorRequest)) == 1


def test_one_who_is_no_member_commits_as_such(broker: MemoryBroker, client: KafkaClient) -> None:
    client.run(commit_offsets(client, "g", {T0: 5}))
    (request,) = broker.requests(OffsetCommitRequest)
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")


def test_a_commit_says_by_whom_and_under_which_leader_epochs(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    offsets = {
        T0: OffsetAndMetadata(5, 3, "batch 7"),
        T1: OffsetAndMetadata(6, metadata="batch 7"),
    }
    client.run(commit_offsets(client, "g", offsets))
    (request,) = broker.requests(OffsetCommitRequest)
    (topic,) = request.topics
    assert [
        (each.partition_index, each.committed_leader_epoch, each.committed_metadata)
        for each in topic.partitions
    ] == [(0, 3, "batch 7"), (1, -1, "batch 7")]


def test_the_oldest_broker_does_the_same() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker, KafkaClient(broker.config()) as client:
        broker.create_topic("t")
        client.run(commit_offsets(client, "g", {T0: 5}))
        assert client.run(committed_offsets(client, "g", [T0])) == {T0: 5}


@pytest.mark.parametrize("name", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"])
def test_trouble_with_the_coordinator_passes(
    broker: MemoryBroker, client: KafkaClient, name: str
) -> None:
    broker.control(OffsetCommitRequest, error_named(name), times=2)
    broker.control(OffsetFetchRequest, error_named(name), times=2)
    client.run(commit_offsets(client, "g", {T0: 5}))
    assert client.run(committed_offsets(client, "g", [T0])) == {T0: 5}


def test_a_coordinator_that_moved_is_found(broker: MemoryBroker, client: KafkaClient) -> None:
    client.run(commit_offsets(client, "g", {T0: 5}))
    broker.cluster.coordinators["g"] = 1
    client.run(commit_offsets(client, "g", {T0: 6}))
    broker.stop(1)
    broker.cluster.coordinators["g"] = 0
    assert client.run(committed_offsets(client, "g", [T0])) == {T0: 6}


def test_the_error_of_one_partition_is_told_with_its_name(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    error = error_named("TOPIC_AUTHORIZATION_FAILED")
    partitions = [OffsetCommitResponsePartition(0), OffsetCommitResponsePartition(1, error.code)]
    answer = OffsetCommitResponse(topics=[OffsetCommitResponseTopic("t", partitions=partitions)])
    broker.control(OffsetCommitRequest, answer)
    with pytest.raises(BrokerError, match=r"OffsetCommit of t-1 for group 'g': TOPIC_AUTHOR"):
        client.run(commit_offsets(client, "g", {T0: 1, T1: 2}))
    refused = OffsetFetchResponsePartition(1, -1, error_code=error.code)
    topic = OffsetFetchResponseTopic("t", [OffsetFetchResponsePartition(0, 5), refused])
    broker.control(OffsetFetchRequest, OffsetFetchResponse(topics=[topic]))
    with pytest.raises(BrokerError, match=r"OffsetFetch of t-1 for group 'g': TOPIC_AUTHOR"):
        client.run(committed_offsets(client, "g", [T0, T1]))


def test_a_group_with_members_refuses(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.control(OffsetCommitRequest, error_named("UNKNOWN_MEMBER_ID"))
    with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
        client.run(commit_offsets(client, "g", {T0: 1}))
    assert len(broker.requests(OffsetCommitRequest)) == 1


def test_a_commit_beside_members_says_to_use_another_group(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    for name in ("kafka.group.id", "another", "stop the group's consumers"):
        broker.control(OffsetCommitRequest, error_named("UNKNOWN_MEMBER_ID"))
        with pytest.raises(BrokerError, match=re.escape(name)):
            client.run(commit_offsets(client, "g", {T0: 1}))


@pytest.mark.parametrize("where", ["group", "partition"])
@pytest.mark.parametrize("is_member", [False, True], ids=["outside", "member"])
def test_a_group_that_the_broker_does_not_know_has_no_offsets(
    broker: MemoryBroker, client: KafkaClient, where: str, *, is_member: bool
) -> None:
    """Brokers of other makers say GROUP_ID_NOT_FOUND, where Kafka's say that it has none."""
    unknown = error_named("GROUP_ID_NOT_FOUND").code

    def refuse(request: OffsetFetchRequest) -> OffsetFetchResponse:
        one = OffsetFetchResponsePartition(0, -1, error_code=unknown)
        several = OffsetFetchResponsePartitions(0, -1, error_code=unknown)
        if where == "group":
            return OffsetFetchResponse(
                error_code=0 if request.groups else unknown,
                groups=[OffsetFetchResponseGroup("g", [], unknown) for _ in request.groups],
            )
        topics = [OffsetFetchResponseTopics("t", partitions=[several])]
        return OffsetFetchResponse(
            topics=[] if request.groups else [OffsetFetchResponseTopic("t", [one])],
            groups=[OffsetFetchResponseGroup("g", topics) for _ in request.groups],
        )

    broker.control(OffsetFetchRequest, refuse)
    member_of = (lambda: Member("g", "m", 1)) if is_member else None
    assert client.run(committed(client, "g", [T0], member_of=member_of)) == {}
    assert len(broker.requests(OffsetFetchRequest)) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_an_error_that_says_nothing_is_tried_again_once(
    broker: MemoryBroker, client: KafkaClient, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker.control(OffsetCommitRequest, error_named("UNKNOWN_SERVER_ERROR"), times=times)
    if times == 1:
        client.run(commit_offsets(client, "g", {T0: 5, T1: 6}))
        assert broker.cluster.committed["g"] == {T0: 5, T1: 6}
    else:
        with pytest.raises(BrokerError, match=r"t-0, t-1 for group 'g': UNKNOWN_SERVER_ERROR"):
            client.run(commit_offsets(client, "g", {T0: 5, T1: 6}))
    assert len(broker.requests(OffsetCommitRequest)) == 2
    (message,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "UNKNOWN_SERVER_ERROR" in message and message.endswith("trying again once")


def test_one_error_that_says_nothing_beside_others(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    """The pause and the remedy of a partition that is tried again anyway hold for both."""
    codes = [error_named("UNKNOWN_SERVER_ERROR").code, error_named("NOT_COORDINATOR").code]
    partitions = [OffsetCommitResponsePartition(each, codes[each]) for each in range(2)]
    answer = OffsetCommitResponse(topics=[OffsetCommitResponseTopic("t", partitions=partitions)])
    broker.control(OffsetCommitRequest, answer)
    client.run(commit_offsets(client, "g", {T0: 5, T1: 6}))
    assert broker.cluster.committed["g"] == {T0: 5, T1: 6}
    assert len(broker.requests(OffsetCommitRequest)) == 2


@pytest.mark.parametrize(
    ("text", "size"), [("x" * 5_000, 5_000), ("\U0001f600" * 3_000, 6_000)], ids=["plain", "wide"]
)
def test_too_large_metadata_is_to_be_shortened_by_so_much(
    broker: MemoryBroker, client: KafkaClient, text: str, size: int
) -> None:
    with pytest.raises(BrokerError) as refused:
        client.run(commit_offsets(client, "g", {T0: OffsetAndMetadata(5, metadata=text), T1: 6}))
    expected = f"has {size} characters, and the brokers' 'offset.metadata.max.bytes' is 4096: "
    assert f"{expected}shorten it by {size - 4096}" in str(refused.value)
    assert broker.cluster.committed["g"] == {T1: 6}
    cut = text[: len(text) * 4096 // size]
    client.run(commit_offsets(client, "g", {T0: OffsetAndMetadata(5, metadata=cut)}))


@pytest.mark.parametrize("versions", [None, KAFKA_2_1], ids=["denied", "old"])
def test_too_large_metadata_where_the_limit_is_not_told(
    versions: dict[int, Versions] | None,
) -> None:
    with MemoryBroker(versions=versions) as broker, KafkaClient(broker.config()) as client:
        broker.create_topic("t")
        denied = error_named("CLUSTER_AUTHORIZATION_FAILED")
        broker.control(DescribeConfigsRequest, denied, times=None)
        with pytest.raises(BrokerError, match=r"OFFSET_METADATA_TOO_LARGE.*4096 by default"):
            offsets = {T0: OffsetAndMetadata(5, metadata="x" * 5_000)}
            client.run(commit_offsets(client, "g", offsets))


def test_an_answer_that_leaves_out_what_was_asked_is_refused(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.control(OffsetCommitRequest, OffsetCommitResponse())
    with pytest.raises(ProtocolError, match="OffsetCommit of t-0: the answer leaves it out"):
        client.run(commit_offsets(client, "g", {T0: 1}))
    broker.control(OffsetFetchRequest, OffsetFetchResponse())
    with pytest.raises(ProtocolError, match="OffsetFetch of t-0: the answer leaves it out"):
        client.run(committed_offsets(client, "g", [T0]))


def test_a_coordinator_that_never_loads_is_told_of_when_time_is_up(broker: MemoryBroker) -> None:
    broker.control(OffsetCommitRequest, error_named("COORDINATOR_LOAD_IN_PROGRESS"), times=None)
    with (
        KafkaClient(broker.config(**ONE_TRY)) as client,
        pytest.raises(KafkaTimeoutError, match=r"group 'g': no success in 1 tries within 61234 ms"),
    ):
        client.run(commit_offsets(client, "g", {T0: 1}, timeout_ms=61_234))


def test_a_coordinator_that_stays_silent_bounds_the_commit(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    client.run(committed_offsets(client, "g", [T0]))
    client.config = broker.config(settings=ConnectionSettings(request_timeout_ms=50))
    broker.control(OffsetCommitRequest, Action.SILENCE, times=None)
    with pytest.raises(KafkaTimeoutError, match="OffsetCommit to group 'g'"):
        client.run(commit_offsets(client, "g", {T0: 1}, timeout_ms=150))


def test_a_member_commits_as_the_member_that_it_is_at_each_try(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    in_epoch_2 = ConsumerMember("m", "instance", ["t"], epoch=2)
    broker.cluster.consumer_groups["g"] = ConsumerGroup(members={"m": in_epoch_2})
    members = [Member("g", "m", 1, "instance"), Member("g", "m", 2, "instance")]
    broker.control(OffsetCommitRequest, error_named("STALE_MEMBER_EPOCH"))
    client.run(commit_offsets(client, "g", {T0: 5}, member_of=lambda: members.pop(0)))
    assert [
        (each.generation_id_or_member_epoch, each.member_id, each.group_instance_id)
        for each in broker.requests(OffsetCommitRequest)
    ] == [(1, "m", "instance"), (2, "m", "instance")]


def test_a_stale_epoch_of_no_member_is_raised(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.control(OffsetCommitRequest, error_named("STALE_MEMBER_EPOCH"))
    with pytest.raises(BrokerError, match="STALE_MEMBER_EPOCH"):
        client.run(commit_offsets(client, "g", {T0: 5}))


def test_a_member_in_no_generation_commits_nothing(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    with pytest.raises(CommitFailedError, match="'g': this consumer is in no generation"):
        client.run(commit_offsets(client, "g", {T0: 5}, member_of=lambda: None))
    assert not broker.requests(OffsetCommitRequest)


@pytest.mark.parametrize("highest", [9, 8, 7, 6])
def test_a_member_reads_what_is_stable_as_well_as_the_broker_can(highest: int) -> None:
    spoken = {OffsetFetchRequest.KEY: Versions(1, highest)}
    with MemoryBroker(versions=spoken) as broker, KafkaClient(broker.config()) as client:
        broker.create_topic("t")
        client.run(commit_offsets(client, "g", {T0: 5}))
        found = client.run(committed(client, "g", [T0], member_of=lambda: Member("g", "m", 3)))
        assert found == {T0: OffsetAndMetadata(5)}
        (request,) = broker.requests(OffsetFetchRequest)
        assert request.require_stable == (highest >= 7)
        assert [each.member_epoch for each in request.groups] == {9: [3], 8: [-1]}.get(highest, [])


def test_each_partition_may_have_metadata_of_its_own(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    client.run(commit_offsets(client, "g", {T0: 5, T1: OffsetAndMetadata(6, metadata="b")}))
    (request,) = broker.requests(OffsetCommitRequest)
    assert [each.committed_metadata for each in request.topics[0].partitions] == ["", "b"]


@pytest.mark.parametrize(
    "name",
    [
        "UNKNOWN_MEMBER_ID",
        "ILLEGAL_GENERATION",
        "FENCED_MEMBER_EPOCH",
        "REBALANCE_IN_PROGRESS",
        "GROUP_ID_NOT_FOUND",
    ],
)
def test_a_member_whose_commit_comes_too_late_is_told_so(
    broker: MemoryBroker, client: KafkaClient, name: str
) -> None:
    broker.control(OffsetCommitRequest, error_named(name))
    with pytest.raises(CommitFailedError, match=rf"OffsetCommit of t-0 .*{name} .*The group "):
        client.run(commit_offsets(client, "g", {T0: 5}, member_of=lambda: Member("g", "m", 1)))
