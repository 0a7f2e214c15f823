"""Real groups: our members, alone and with confluent-kafka's, and a killed member."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.client import ClientConfig, CoordinatorKey, KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError
from spark_kafka_source.groups import (
    CommitFailedError,
    OffsetAndMetadata,
    commit_offsets,
    committed,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.protocol.messages.group_admin import DeleteGroupsRequest
from spark_kafka_source.protocol.messages.membership import (
    ConsumerGroupHeartbeatRequest,
    LeaveGroupRequest,
    MemberIdentity,
)
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import longer_and_longer
from tests.groups.real_members import SESSION_MS, Ours, Theirs, divided, settle
from tests.testing.memory.group_steps import Join
from tests.testing.memory.sides import GROUP, Real

pytestmark = pytest.mark.kafka

PROTOCOLS = pytest.mark.parametrize("protocol", ["range", "consumer"])


@pytest.fixture
def made(kafka: LocalKafka, topic: str) -> tuple[str, str, str]:
    """Return bootstrap servers, a group, and a topic of six partitions."""
    kafka.create_topic(topic, partitions=6)
    return kafka.bootstrap_servers, f"group-of-{topic}", topic


@pytest.fixture
def members() -> Iterator[ExitStack]:
    with ExitStack() as members:
        yield members


def test_three_members_of_this_client_join_and_leave(
    made: tuple[str, str, str], members: ExitStack
) -> None:
    servers, group, topic = made
    three = [
        members.enter_context(closing(Ours(servers, group, "cooperative-sticky", topic)))
        for _ in range(3)
    ]
    settle(three[:1], divided(three[:1], 6))
    settle(three, divided(three, 6))
    three[0].close()
    settle(three[1:], divided(three[1:], 6))
    # No member lost partitions: each partition that moved was revoked first.
    assert not [told for each in three for told in each.told.said if told[0] == "lost"]


@pytest.mark.parametrize(
    ("protocol", "first"),
    [
        ("range", Ours),
        ("range", Theirs),
        ("cooperative-sticky", Ours),
        ("cooperative-sticky", Theirs),
        ("consumer", Ours),
    ],
)
def test_beside_confluent_kafka(
    made: tuple[str, str, str],
    members: ExitStack,
    protocol: str,
    first: type[Ours] | type[Theirs],
) -> None:
    """In the classic protocol the first member leads."""
    servers, group, topic = made
    second = Theirs if first is Ours else Ours
    one = members.enter_context(closing(first(servers, group, protocol, topic)))
    settle([one], divided([one], 6))
    two = members.enter_context(closing(second(servers, group, protocol, topic)))
    settle([one, two], divided([one, two], 6))
    three = members.enter_context(closing(Ours(servers, group, protocol, topic)))
    settle([one, two, three], divided([one, two, three], 6))
    two.close()
    settle([one, three], divided([one, three], 6))


def test_what_a_killed_process_owned_goes_to_others_after_its_session(
    made: tuple[str, str, str], members: ExitStack
) -> None:
    """All protocols run at the same time, since a session timeout is long."""
    servers, group, topic = made
    protocols = ["range", "cooperative-sticky", "consumer"]
    groups = [(servers, f"{group}-{protocol}", protocol, topic) for protocol in protocols]
    command = [sys.executable, "-m", "tests.groups.real_members"]
    with ExitStack() as started:
        processes = [
            started.enter_context(subprocess.Popen([*command, *made_of], stdout=subprocess.PIPE))
            for made_of in groups
        ]
        for process in processes:
            started.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"owns\n"
        ours = [members.enter_context(closing(Ours(*made_of))) for made_of in groups]
        settle(ours, lambda: all(len(each.owned()) == 3 for each in ours))
        killed_seconds = time.monotonic()
    settle(ours, lambda: all(divided([each], 6)() for each in ours))
    # Not before the session timeouts, minus a heartbeat interval.
    assert time.monotonic() - killed_seconds > SESSION_MS / 1000 - 1


@PROTOCOLS
def test_only_members_commit_and_only_in_their_generation(
    made: tuple[str, str, str], members: ExitStack, protocol: str
) -> None:
    servers, group, topic = made
    config = ClientConfig.from_settings(Settings({"kafka.bootstrap.servers": servers}))
    client = members.enter_context(KafkaClient(config))
    one = members.enter_context(closing(Ours(servers, group, protocol, topic)))
    settle([one], divided([one], 6))
    offsets = {TopicPartition(topic, 0): 7}
    membership = one.membership
    client.run(commit_offsets(client, group, offsets, member_of=lambda: membership.member))
    found = client.run(committed(client, group, offsets, member_of=lambda: membership.member))
    assert {where: each.offset for where, each in found.items()} == offsets
    former = membership.member
    two = members.enter_context(closing(Ours(servers, group, protocol, topic)))
    settle([one, two], divided([one, two], 6))
    kept = {min(one.owned()): 8}
    client.run(commit_offsets(client, group, kept, member_of=lambda: membership.member))
    moved = {min(two.owned()): 9}
    error: type[KafkaError] = CommitFailedError
    refused = "ILLEGAL_GENERATION"
    if protocol == "consumer":  # The member retries, since it could have a new epoch by then.
        error, refused = KafkaTimeoutError, "STALE_MEMBER_EPOCH"
    for timeout_ms in longer_and_longer(500):
        with pytest.raises((CommitFailedError, KafkaTimeoutError)) as caught:
            client.run(
                commit_offsets(
                    client, group, moved, member_of=lambda: former, timeout_ms=timeout_ms
                )
            )
        if refused in str(caught.value):
            break
    assert refused in str(caught.value)
    assert isinstance(caught.value, error)


@PROTOCOLS
def test_a_commit_beside_members_says_to_use_another_group(
    made: tuple[str, str, str], members: ExitStack, protocol: str
) -> None:
    servers, group, topic = made
    one = members.enter_context(closing(Ours(servers, group, protocol, topic)))
    settle([one], divided([one], 6))
    where = TopicPartition(topic, 0)
    consumer = members.enter_context(KafkaConsumer(bootstrap_servers=servers, group_id=group))
    consumer.assign([where])
    with pytest.raises(BrokerError, match=r"UNKNOWN_MEMBER_ID.*commit under another 'group_id'"):
        consumer.commit({where: 1})


def test_too_large_metadata_is_to_be_shortened_by_so_much(made: tuple[str, str, str]) -> None:
    servers, group, topic = made
    where = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=servers, group_id=group) as consumer:
        consumer.assign([where])
        # Java counts each of these characters as two.
        for text, size in (("x" * 4_097, 4_097), ("\U0001f600" * 2_049, 4_098)):
            expected = f"has {size} characters.*is 4096: shorten it by {size - 4096}"
            with pytest.raises(BrokerError, match=expected):
                consumer.commit({where: OffsetAndMetadata(1, metadata=text)})
        consumer.commit({where: OffsetAndMetadata(1, metadata="\U0001f600" * 2_048)})


@PROTOCOLS
def test_a_member_whose_group_was_deleted_joins_anew(
    made: tuple[str, str, str], members: ExitStack, protocol: str
) -> None:
    """An example: the process was suspended, its session ended, and somebody deleted the group."""
    servers, group, topic = made
    config = ClientConfig.from_settings(Settings({"kafka.bootstrap.servers": servers}))
    client = members.enter_context(KafkaClient(config))
    one = members.enter_context(closing(Ours(servers, group, protocol, topic)))
    settle([one], divided([one], 6))

    def delete(deadline: Deadline) -> int:
        member = one.membership.member
        coordinator = client.run(client.coordinator(CoordinatorKey.of_group(group), deadline))
        if member is not None and protocol == "consumer":
            beat = ConsumerGroupHeartbeatRequest(group, member.member_id, member_epoch=-1)
            client.run(client.send(beat, coordinator, deadline))
        elif member is not None:
            leave = LeaveGroupRequest(group, members=[MemberIdentity(member.member_id)])
            client.run(client.send(leave, coordinator, deadline))
        answer = client.run(client.send(DeleteGroupsRequest([group]), coordinator, deadline))
        return answer.results[0].error_code

    # The member may learn of its removal and rejoin before its group is deleted.
    deadline = Deadline.after_ms(60_000)
    while delete(deadline):
        assert not deadline.expired
    settle([one], lambda: "lost" in [told[0] for told in one.told.said])
    settle([one], divided([one], 6))


def test_a_group_of_something_else_is_refused_by_name(
    kafka: LocalKafka, made: tuple[str, str, str], members: ExitStack
) -> None:
    """The broker answers that the group does not exist. Usually a member then rejoins."""
    with Real(kafka) as side:
        for step in [Join("m", protocol_type="connect")] * 2:
            step.take(side)
        servers, _, topic = made
        one = members.enter_context(closing(Ours(servers, side.name(GROUP), "consumer", topic)))
        with pytest.raises(BrokerError, match=r"GROUP_ID_NOT_FOUND.*classic protocol.*migration"):
            settle([one], lambda: False)


@PROTOCOLS
def test_a_static_member_comes_back_to_what_it_had(
    made: tuple[str, str, str], members: ExitStack, protocol: str
) -> None:
    servers, group, topic = made
    one = members.enter_context(closing(Ours(servers, group, protocol, topic)))
    two = Ours(servers, group, protocol, topic, group_instance_id="i")
    with closing(two):
        settle([one, two], divided([one, two], 6))
        owned = two.owned()
    told = len(one.told.said)
    two = members.enter_context(
        closing(Ours(servers, group, protocol, topic, group_instance_id="i"))
    )
    settle([one, two], lambda: two.owned() == owned)
    assert len(one.told.said) == told
