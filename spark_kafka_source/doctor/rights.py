"""Checks of topics, and of rights. Nothing here has a side effect: no topic, no producer id."""

from collections.abc import Mapping

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.client.topic_rights import (
    NOT_TOLD,
    AclOperation,
    granted,
    topic_with_rights,
)
from spark_kafka_source.denials import CREATE_IT
from spark_kafka_source.doctor.finding import Finding, failed, ok, unknown, wrong
from spark_kafka_source.errors import KafkaError, error_code
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.group_admin import DescribeGroupsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataResponseTopic

_NEEDED = {
    AclOperation.READ: "the program reads, or writes exactly once: its restart reads how "
    "transactions ended",
    AclOperation.WRITE: "the program writes",
}
"""Who needs a right on a topic."""
# From v6 on an unknown group is an error, without the rights.
_GROUPS_WITH_RIGHTS = 5
_GROUP, _TRANSACTIONAL_ID = "group", "transactional id"
_DENIED = {_GROUP: "GROUP_AUTHORIZATION_FAILED"} | {
    _TRANSACTIONAL_ID: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
}
# The authorizer answers before the coordinator: these answers show that DESCRIBE is there.
_ELSEWHERE = {"NONE", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"} | {
    "COORDINATOR_LOAD_IN_PROGRESS",
    "TRANSACTIONAL_ID_NOT_FOUND",
}


def check_topic(client: KafkaClient, topic: str, deadline: Deadline) -> list[Finding]:
    """Return the findings for a topic: leaders, replicas in sync, rights."""
    try:
        described = client.run(topic_with_rights(client, topic, deadline))
    except KafkaError as error:
        return [failed("topic", topic, error, "--topic", "See the findings for the brokers")]
    if described is None:
        return [unknown("topic", topic, "the broker's answer leaves it out")]
    if described.error_code:
        return [_no_topic(topic, error_code(described.error_code).name)]
    rights = [_topic_right(described, right) for right in _NEEDED]
    return [_leaders(described), _in_sync(described), *rights, _describes(topic)]


def check_group(client: KafkaClient, group: str, deadline: Deadline) -> list[Finding]:
    """Return the finding for the right to use a group. All brokers are asked side by side."""
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    brokers = dict.fromkeys(client.cluster.brokers.values(), request)
    asked = client.send_to_each(brokers, deadline, max_version=_GROUPS_WITH_RIGHTS)
    codes: list[str] = []
    for answer in client.run(asked).values():
        groups = [] if isinstance(answer, KafkaError) else answer.groups
        for described in groups:
            if described.group_id != group:
                continue
            operations = described.authorized_operations
            if not described.error_code and operations != NOT_TOLD:
                may_read = AclOperation.READ.is_in(operations)
                return [_right(_GROUP, group, "READ", may_read)]
            codes.append(error_code(described.error_code).name)
    return [_by_codes(_GROUP, group, codes)]


def check_transactional_id(client: KafkaClient, name: str, deadline: Deadline) -> list[Finding]:
    """Return the finding for a transactional id. To ask for WRITE has a side effect."""
    request = DescribeTransactionsRequest(transactional_ids=[name])
    brokers = dict.fromkeys(client.cluster.brokers.values(), request)
    codes = [
        error_code(state.error_code).name
        for answer in client.run(client.send_to_each(brokers, deadline)).values()
        if not isinstance(answer, KafkaError)
        for state in answer.transaction_states
        if state.transactional_id == name
    ]
    return [_by_codes(_TRANSACTIONAL_ID, name, codes)]


def _by_codes(kind: str, name: str, codes: list[str]) -> Finding:
    if _DENIED[kind] in codes:
        return _right(kind, name, "DESCRIBE", False)
    if _ELSEWHERE & set(codes):
        more = "READ" if kind == _GROUP else "WRITE"
        text = f"DESCRIBE is granted; {more} cannot be asked without a side effect"
        return unknown(f"{kind} right", name, text)
    return unknown(f"{kind} right", name, f"no broker tells: {', '.join(codes) or 'no answer'}")


def _no_topic(topic: str, name: str) -> Finding:
    remedies: Mapping[str, str] = {
        "UNKNOWN_TOPIC_OR_PARTITION": f"Check the name. Or have DESCRIBE granted. {CREATE_IT}",
        "TOPIC_AUTHORIZATION_FAILED": "Have DESCRIBE on the topic granted to this user",
    }
    remedy = remedies.get(name, "Check the name of the topic")
    return wrong("topic", topic, name, remedy, "--topic")


def _leaders(topic: MetadataResponseTopic) -> Finding:
    without = [each.partition_index for each in topic.partitions if each.leader_id < 0]
    if without:
        text = f"{_some(without)} of {len(topic.partitions)} partitions have no leader"
        remedy = "Start the brokers that hold their replicas; see 'topics NAME'"
        return wrong("leaders", topic.name or "", text, remedy, "--topic")
    return ok("leaders", topic.name or "", f"{len(topic.partitions)} partitions have leaders")


def _in_sync(topic: MetadataResponseTopic) -> Finding:
    behind = [
        partition.partition_index
        for partition in topic.partitions
        if set(partition.replica_nodes) - set(partition.isr_nodes)
    ]
    if behind:
        text = f"{_some(behind)} of {len(topic.partitions)} partitions have replicas behind"
        remedy = "Look at the brokers of these replicas; see 'topics NAME'"
        return wrong("in sync", topic.name or "", text, remedy, "--topic")
    return ok("in sync", topic.name or "", "all replicas are in sync")


def _some(partitions: list[int]) -> str:
    shown = ", ".join(map(str, sorted(partitions)[:5]))
    return f"{len(partitions)} ({shown}{', ...' if len(partitions) > 5 else ''})"


def _topic_right(topic: MetadataResponseTopic, right: AclOperation) -> Finding:
    name = topic.name or ""
    is_granted = granted(topic, right)
    if is_granted is None:
        return unknown("topic right", name, f"{right.name}: the broker does not tell rights")
    return _right("topic", name, right.name, is_granted, _NEEDED[right])


def _describes(topic: str) -> Finding:
    return _right("topic", topic, "DESCRIBE", True)


def _right(
    kind: str, name: str, right: str, granted: bool, needed: str = "the program needs it"
) -> Finding:
    check = f"{kind} right"
    if granted:
        return ok(check, name, f"{right} is granted")
    remedy = f"Have {right} on the {kind} granted to this user, if {needed}"
    option = f"--{kind.replace(' ', '-')}"
    return wrong(check, name, f"{right} is not granted", remedy, option)
