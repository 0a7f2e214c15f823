"""List, describe and delete groups, on old and new brokers, with all errors."""

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.admin import GroupNotEmptyError, GroupNotFoundError
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    ProtocolError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.protocol import Versions
from spark_kafka_source.protocol.messages import consumer_group_describe as kip_848
from spark_kafka_source.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
)
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.testing.memory import KAFKA_2_1, MemoryBroker
from tests.admin.conftest import T0, T1, U0, address, fill
from tests.groups.members import member


def test_all_brokers_are_asked_for_their_groups(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    assert [each.group_id for each in admin.list_groups()] == ["g", "h"]
    asked = [each.node_id for each in broker.seen if type(each.request) is ListGroupsRequest]
    assert sorted(asked) == [0, 1, 2]


def test_groups_are_picked_by_state_and_type(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    assert [each.state for each in admin.list_groups(states=["Empty"])] == ["Empty", "Empty"]
    assert admin.list_groups(states=["Stable"]) == []
    assert admin.list_groups(types=["consumer"]) == []
    assert len(admin.list_groups(types=["classic"])) == 2


def test_a_broker_that_is_not_ready_is_asked_again(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    loading = error_named("COORDINATOR_LOAD_IN_PROGRESS")
    broker.control(ListGroupsRequest, loading, times=2)
    assert len(admin.list_groups()) == 2
    broker.control(ListGroupsRequest, error_named("CLUSTER_AUTHORIZATION_FAILED"), node_id=2)
    with pytest.raises(BrokerError, match="ListGroups of broker 2: CLUSTER_AUTHORIZATION_FAILED"):
        admin.list_groups()


def test_share_groups_have_no_offsets(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    groups = [ListedGroup("s", "share", "Stable", "Share"), ListedGroup("c", "connect", "Stable")]
    broker.control(ListGroupsRequest, ListGroupsResponse(groups=groups), node_id=0)
    found = {each.group_id: each for each in admin.list_groups()}
    assert (found["s"].type, found["c"].type) == ("share", "classic")
    assert {name for name, each in found.items() if each.has_offsets} == {"g", "h"}


def test_a_group_with_members(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    with member(broker, "t", group_instance_id="i") as one:
        one.settle(T0, T1)
        found = admin.describe_group("g")
        assert (found.type, found.state, found.assignor) == ("classic", "Stable", "deal")
        assert found.coordinator.node_id == 1
        (only,) = found.members
        assert (only.group_instance_id, only.client_id, only.assignment) == (
            "i",
            "client",
            (T0, T1),
        )
        assert [
            (each.topic_partition, each.member_id is None) for each in admin.group_lag("g")
        ] == [
            (T0, False),
            (T1, False),
            (U0, True),
        ]
        for refused in (
            lambda: admin.reset_offsets("g", "latest", dry_run=False),
            lambda: admin.delete_group("g"),
        ):
            with pytest.raises(GroupNotEmptyError, match=r"only while it has no members"):
                refused()
        with pytest.raises(GroupNotEmptyError, match=r"'g' is Stable: .* \(client at /127.0.0.1\)"):
            admin.reset_offsets("g", "latest")
        assert set(map(str, admin.delete_offsets("g", ["t"]).values())) == {
            "OffsetDelete of t-0 for group 'g': GROUP_SUBSCRIBED_TO_TOPIC (86)"
        }


def test_a_group_of_kip_848(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    owned = kip_848.Assignment([kip_848.TopicPartitions(topic_name="t", partitions=[1, 0])])
    one = kip_848.Member("m", "i", "rack", 7, "client", "/host", assignment=owned)
    group = kip_848.DescribedGroup(0, None, "g", "Reconciling", 8, 7, "uniform", [one])
    broker.control(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse(groups=[group]))
    found = admin.describe_group("g")
    assert (found.type, found.group_epoch, found.assignment_epoch) == ("consumer", 8, 7)
    (only,) = found.members
    assert (only.assignment, only.target_assignment, only.epoch) == ((T0, T1), (), 7)
    assert not broker.requests(DescribeGroupsRequest)


def test_the_oldest_broker_describes_lists_and_deletes() -> None:
    with MemoryBroker(2, versions=KAFKA_2_1) as broker:
        fill(broker)
        with KafkaAdmin(bootstrap_servers=address(broker), retry_backoff_ms=0) as admin:
            assert [each.type for each in admin.list_groups()] == ["classic", "classic"]
            assert [each.state for each in admin.describe_groups(["g", "h"])] == ["Empty", "Empty"]
            assert [each.lag for each in admin.group_lag("g", "h")] == [2, 0, 1]
            with pytest.raises(GroupNotFoundError, match="no group 'nope'"):
                admin.describe_group("nope")
            with pytest.raises(UnsupportedVersionError):
                admin.list_groups(states=["Empty"])
            with pytest.raises(UnsupportedVersionError, match="OffsetDelete"):
                admin.delete_offsets("g", ["t"])
            admin.delete_group("g")
            assert list(broker.cluster.committed) == ["h"]


def test_coordinators_of_many_groups_are_found_at_once(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    admin.describe_groups(["g", "h"])
    assert len(broker.requests(FindCoordinatorRequest)) == 1


@pytest.mark.parametrize(
    "name", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"]
)
def test_trouble_with_a_coordinator_passes(
    broker: MemoryBroker, admin: KafkaAdmin, name: str
) -> None:
    for request_type in (DescribeGroupsRequest, ConsumerGroupDescribeRequest, DeleteGroupsRequest):
        broker.control(request_type, error_named(name), times=2)
    assert admin.describe_group("g").state == "Empty"
    assert admin.delete_groups(["g"]) == {"g": None}


def test_only_what_is_not_answered_yet_is_asked_again(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(DescribeGroupsRequest, error_named("NOT_COORDINATOR"), node_id=2)
    admin.describe_groups(["g", "h"])
    asked = [each.groups for each in broker.requests(DescribeGroupsRequest)]
    assert sorted(asked) == [["g"], ["h"], ["h"]]


def test_a_group_that_may_not_be_seen_is_named(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    """There is no advice: a member or a producer would need another right."""
    refused = error_named("GROUP_AUTHORIZATION_FAILED")
    broker.control(ConsumerGroupDescribeRequest, refused)
    said = "of group 'g': GROUP_AUTHORIZATION_FAILED (30)"
    with pytest.raises(BrokerError) as denied:
        admin.describe_group("g")
    assert str(denied.value) == f"ConsumerGroupDescribe {said}"
    broker.control(FindCoordinatorRequest, refused, times=None)
    admin.client.cluster.coordinators.clear()
    with pytest.raises(BrokerError) as denied:
        admin.describe_group("g")
    assert str(denied.value) == f"FindCoordinator {said}"


def test_an_answer_that_leaves_a_group_out_is_refused(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    broker.control(DescribeGroupsRequest, DescribeGroupsResponse())
    with pytest.raises(ProtocolError, match="of group 'g': the answer leaves it out"):
        admin.describe_group("g")


def test_an_assignment_of_a_format_of_its_own_hides_nothing_else(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    odd = DescribedGroupMember("m", None, "client", "/host", b"", b"\x00\x00\x7f\xff\xff\xff")
    group = DescribedGroup(0, None, "g", "Stable", "consumer", "own", [odd])
    broker.control(DescribeGroupsRequest, DescribeGroupsResponse(groups=[group]), times=None)
    assert admin.describe_group("g").members[0].assignment == ()
    assert len(admin.group_lag("g")) == 2


def test_each_group_is_deleted_or_says_why_not(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    found = admin.delete_groups(["g", "nope", "h"])
    assert (found["g"], found["h"]) == (None, None)
    assert isinstance(found["nope"], GroupNotFoundError)
    assert broker.cluster.committed == {}


@pytest.mark.parametrize("answer", ["group", "old"])
def test_a_group_that_the_broker_does_not_know_has_committed_nothing(
    broker: MemoryBroker, admin: KafkaAdmin, answer: str
) -> None:
    """Brokers of other makers say GROUP_ID_NOT_FOUND, where Kafka's say that it has no offsets."""
    if answer == "old":
        broker.cluster.versions |= {OffsetFetchRequest.KEY: Versions(0, 7)}
    broker.control(OffsetFetchRequest, error_named("GROUP_ID_NOT_FOUND"), times=None)
    assert admin.list_group_offsets("never") == {}
    assert len(admin.group_lag("g")) == 0


def test_offsets_of_topics_and_partitions_are_deleted(
    broker: MemoryBroker, admin: KafkaAdmin
) -> None:
    assert admin.delete_offsets("g", ["u", T1]) == {T1: None, U0: None}
    assert admin.list_group_offsets("g").keys() == {T0}
    assert admin.delete_offsets("g", ["nope"]) == {}
    broker.control(OffsetDeleteRequest, error_named("GROUP_ID_NOT_FOUND"))
    broker.cluster.committed.pop("g")
    with pytest.raises(GroupNotFoundError):
        admin.delete_offsets("g", [T0])


def test_configuration_is_that_of_the_consumer() -> None:
    with pytest.raises(ConfigurationError, match=r"'bootstrap_server': .*'bootstrap_servers'"):
        KafkaAdmin(bootstrap_server="localhost:9092")
    with pytest.raises(ConfigurationError, match="'bootstrap_servers': is missing"):
        KafkaAdmin()


def test_an_error_names_some_of_the_members() -> None:
    error = GroupNotEmptyError("g", "it can go", "Stable", ["a at /1", "b at /2", "c", "d", "e"])
    assert str(error).endswith("stop its consumers first (a at /1, b at /2, c and 2 more)")
