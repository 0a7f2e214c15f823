"""A group's committed offsets, read and written by a member or by a client outside the group.

https://kafka.apache.org/protocol#The_Messages_OffsetCommit
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from spark_kafka_source.client import CoordinatorKey, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    BrokerError,
    KafkaError,
    LocalError,
    ProtocolError,
    Remedy,
    UnsupportedVersionError,
    error_code,
    error_named,
)
from spark_kafka_source.groups.member import NO_GENERATION, NO_MEMBER_ID, Member
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# Topics have names up to v9, and ids from v10 on.
_COMMIT_BY_NAME = 9
# A request asks for one group up to v7, and for several from v8 on (KIP-709).
_FETCH_ONE_GROUP = 7
_FETCH_BY_NAME = 9
_STALE = "STALE_MEMBER_EPOCH"
_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_UNKNOWN_GROUP = error_named("GROUP_ID_NOT_FOUND")
_UNEXPLAINED = error_named("UNKNOWN_SERVER_ERROR")
_TOO_LARGE = error_named("OFFSET_METADATA_TOO_LARGE")
_CONFIG_MS = 2_000
_MOST_METADATA = "offset.metadata.max.bytes"
# A coordinator may learn of a new topic later than other brokers. A deleted topic stays unknown.
_TRIES_OF_UNKNOWN = 3

MemberOf = Callable[[], Member | None]
"""Returns the member that commits.

It is called before each try: the generation may have changed.
"""


_REBALANCED = (
    "The group has rebalanced since: between two polls there must be less than "
    "'max.poll.interval.ms', or the partitions go to others"
)
_ADVICE: Mapping[str, str] = {
    "GROUP_ID_NOT_FOUND": _REBALANCED,
    "UNKNOWN_MEMBER_ID": _REBALANCED,
    "ILLEGAL_GENERATION": _REBALANCED,
    "FENCED_MEMBER_EPOCH": _REBALANCED,
    "REBALANCE_IN_PROGRESS": "The group is rebalancing: poll, and commit again after that",
}
"""Advice for a member whose commit came too late, by the name of the error."""


_ADVICE_FROM_OUTSIDE: Mapping[str, str] = {
    "UNKNOWN_MEMBER_ID": "the group has members, and then Kafka takes offsets only from them: "
    "commit under another 'kafka.group.id', or stop the group's consumers first",
}
"""Advice for a commit from outside the group, by the name of the error."""


def has_no_group(code: int) -> bool:
    """Whether an answer to OffsetFetch says that there is no such group: it has no offsets.

    Kafka's brokers say so only to members. Those of other makers say so to anybody.
    """
    return code == _UNKNOWN_GROUP.code


class CommitFailedError(LocalError):
    """Nothing was committed: the group rebalances, or it has rebalanced without this member."""


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """Position of a group in one partition. The leader epoch is -1 if it is not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


async def commit_offsets(
    client: KafkaClient,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    leader_epochs: Mapping[TopicPartition, int] = MappingProxyType({}),
    metadata: str | Mapping[TopicPartition, str] = "",
    timeout_ms: int | None = None,
    member_of: MemberOf | None = None,
) -> None:
    """Commit the next offset to read of each partition for the group.

    `leader_epochs` (of partitions with a known one) let the next reader notice a truncated log
    (KIP-320). `metadata` is a short text that tools show: one text for all partitions, or one for
    each. Without `member_of` the group must have no members, or Kafka answers UNKNOWN_MEMBER_ID.

    The commit is tried again after coordinator errors, and after a stale member epoch, for up to
    `timeout_ms` (default `default.api.timeout.ms`). It is tried again once after
    UNKNOWN_SERVER_ERROR, by which a broker does not say what is wrong. If partitions are refused,
    such as those of a deleted topic, the other offsets are committed. Then `BrokerError` names the
    group and the refused partitions. Raises `KafkaTimeoutError`. Raises `CommitFailedError` if
    `member_of` returns None, or a member that the group no longer knows.
    """
    commit = _Commit(group_id, offsets, leader_epochs, metadata, member_of)
    key = CoordinatorKey.of_group(group_id)

    async def attempt(deadline: Deadline) -> None:
        request = commit.request()
        commit.take(
            await client.send_to_coordinator(request, key, deadline, max_version=_COMMIT_BY_NAME)
        )

    if offsets:
        await client.retrying(f"OffsetCommit to group {group_id!r}", attempt, timeout_ms=timeout_ms)
    if any(each.error == _TOO_LARGE for each in commit.refusals.values()):
        commit.explain_size(await _most_metadata(client, key))
    if commit.refusals:
        raise _refused(group_id, commit.refusals, len(offsets))


class _Commit:
    """A commit over several tries: what is left to commit, and what was refused for good."""

    def __init__(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int],
        metadata: str | Mapping[TopicPartition, str],
        member_of: MemberOf | None,
    ) -> None:
        self._group_id = group_id
        self._left = dict(offsets)
        self._leader_epochs = leader_epochs
        self._metadata = metadata
        self._member_of = member_of
        self._tries = 0
        self._was_unexplained = False
        self.refusals: dict[TopicPartition, BrokerError] = {}

    def request(self) -> OffsetCommitRequest:
        """Return the request for what is left, by the member that commits now."""
        member = _who(self._group_id, self._member_of)
        topics = [
            OffsetCommitRequestTopic(
                name=name, partitions=[self._row(TopicPartition(name, each)) for each in found]
            )
            for name, found in _by_topic(self._left).items()
        ]
        return OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=topics,
        )

    def _row(self, where: TopicPartition) -> OffsetCommitRequestPartition:
        epoch = self._leader_epochs.get(where, -1)
        return OffsetCommitRequestPartition(
            where.partition, self._left[where], epoch, self._text(where)
        )

    def _text(self, where: TopicPartition) -> str:
        given = self._metadata
        return given if isinstance(given, str) else given.get(where, "")

    def take(self, answer: OffsetCommitResponse) -> None:
        """Take in an answer. Raises the error of a partition that is to be tried again."""
        answered = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        _check_all_answered("OffsetCommit", self._left, answered)
        errors = {
            where: _error(code, "OffsetCommit", self._group_id, where, self._member_of)
            for where, code in answered.items()
            if code and where in self._left
        }
        self._tries += 1
        left: dict[TopicPartition, int] = {}
        for where, error in errors.items():
            if self._is_to_try(error):
                left[where] = self._left[where]
            else:
                self.refusals[where] = error
        self._left = left
        if left:
            raise self._first_of(errors)

    def _is_to_try(self, error: BrokerError) -> bool:
        if error.error == _UNEXPLAINED:
            return not self._was_unexplained
        is_gone = error.error == _UNKNOWN_TOPIC and self._tries >= _TRIES_OF_UNKNOWN
        return error.retriable and not is_gone

    def _first_of(self, errors: Mapping[TopicPartition, BrokerError]) -> BrokerError:
        """Return the first error to try again after. Note an unexplained one: it counts once."""
        first = errors[min(self._left)]
        unexplained = [each for each in self._left if errors[each].error == _UNEXPLAINED]
        if unexplained:
            self._was_unexplained = True
            logger.warning("%s; trying again once", errors[min(unexplained)])
            first.remedy = first.remedy if first.retriable else Remedy.RETRY
        return first

    def explain_size(self, most: int | None) -> None:
        """Say in the errors of too large metadata by how much it is to be shortened."""
        for where, error in self.refusals.items():
            if error.error != _TOO_LARGE:
                continue
            # Brokers count as Java does: a character outside of the first 65,536 is two.
            size = len(self._text(where).encode("utf-16-le", "surrogatepass")) // 2
            limit = "allows fewer, 4096 by default: shorten it"
            if most is not None:
                limit = f"is {most}: shorten it by {max(size - most, 1)}"
            text = (
                f"the metadata has {size} characters, and the brokers' 'offset.metadata.max.bytes'"
            )
            self.refusals[where] = BrokerError(error.error, error.what, f"{text} {limit}")


async def committed_offsets(
    client: KafkaClient, group_id: str, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the group's committed offsets, read from outside.

    Partitions without one are left out.
    """
    found = await committed(client, group_id, topic_partitions)
    return {where: each.offset for where, each in found.items()}


async def committed(
    client: KafkaClient,
    group_id: str,
    topic_partitions: Iterable[TopicPartition],
    *,
    timeout_ms: int | None = None,
    member_of: MemberOf | None = None,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets of the group. Partitions without one are left out.

    A member waits for the end of transactions that commit offsets to the group (KIP-447). Raises
    the same errors as `commit_offsets`.
    """
    topic_partitions = list(topic_partitions)

    async def attempt(deadline: Deadline) -> dict[TopicPartition, OffsetAndMetadata]:
        requests = _fetch_requests(group_id, member_of, topic_partitions)
        answer = await _fetch(client, requests, group_id, deadline)
        found = {}
        error, rows = _answered(answer)
        if has_no_group(error):
            return {}
        _check(error, "OffsetFetch", group_id, member_of=member_of)
        for name, partition in rows:
            where = TopicPartition(name, partition.partition_index)
            if has_no_group(partition.error_code):
                return {}
            _check(partition.error_code, "OffsetFetch", group_id, where)
            found[where] = OffsetAndMetadata(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.metadata or "",
            )
        _check_all_answered("OffsetFetch", topic_partitions, found)
        return {where: found[where] for where in topic_partitions if found[where].offset >= 0}

    return await client.retrying(
        f"OffsetFetch of group {group_id!r}", attempt, timeout_ms=timeout_ms
    )


async def _most_metadata(client: KafkaClient, key: CoordinatorKey) -> int | None:
    """Return the coordinator's `offset.metadata.max.bytes`, or None if it does not tell."""
    # Only this error needs them.
    from spark_kafka_source.client.configs import numbers_set_at  # noqa: PLC0415

    async def attempt(deadline: Deadline) -> int | None:
        coordinator = await client.coordinator(key, deadline)
        return (await numbers_set_at(client, coordinator, [_MOST_METADATA], deadline)).get(
            _MOST_METADATA
        )

    try:
        return await client.retrying("DescribeConfigs", attempt, timeout_ms=_CONFIG_MS)
    except KafkaError:  # The commit's own error counts.
        return None


def _who(group_id: str, member_of: MemberOf | None) -> Member:
    if member_of is None:
        return Member(group_id, NO_MEMBER_ID, NO_GENERATION)
    member = member_of()
    if member is None:
        raise CommitFailedError(
            f"Group {group_id!r}: this consumer is in no generation of its group now: the group "
            "rebalances, or has given its partitions to others since it did not poll in time"
        )
    return member


def _fetch_requests(
    group_id: str, member_of: MemberOf | None, topic_partitions: Iterable[TopicPartition]
) -> list[tuple[OffsetFetchRequest, int]]:
    """Return the requests to try, each with its highest version, from the best to the oldest."""
    by_topic = _by_topic(topic_partitions)
    topics = [OffsetFetchRequestTopic(name, found) for name, found in by_topic.items()]
    alone = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=False)
    if member_of is None:
        return [(alone, _FETCH_ONE_GROUP)]
    stable = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=True)
    member = member_of()
    if member is None:
        return [(stable, _FETCH_ONE_GROUP), (alone, _FETCH_ONE_GROUP)]
    group = OffsetFetchRequestGroup(
        group_id,
        member.member_id,
        member.generation_id,
        [OffsetFetchRequestTopics(name, partition_indexes=each) for name, each in by_topic.items()],
    )
    several = OffsetFetchRequest(groups=[group], require_stable=True)
    return [(several, _FETCH_BY_NAME), (stable, _FETCH_ONE_GROUP), (alone, _FETCH_ONE_GROUP)]


async def _fetch(
    client: KafkaClient,
    requests: Sequence[tuple[OffsetFetchRequest, int]],
    group_id: str,
    deadline: Deadline,
) -> OffsetFetchResponse:
    """Return the answer to the first request that the broker supports."""
    *better, (last, last_version) = requests
    key = CoordinatorKey.of_group(group_id)
    for request, max_version in better:
        try:
            return await client.send_to_coordinator(request, key, deadline, max_version=max_version)
        except UnsupportedVersionError:
            continue
    return await client.send_to_coordinator(last, key, deadline, max_version=last_version)


def _answered(
    answer: OffsetFetchResponse,
) -> tuple[int, list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]]]:
    """Return the error of the group, and the answer for each partition with its topic."""
    if answer.groups:
        group = answer.groups[0]
        return group.error_code, [(t.name, each) for t in group.topics for each in t.partitions]
    return answer.error_code, [(t.name, each) for t in answer.topics for each in t.partitions]


def _by_topic(topic_partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for name, partition in topic_partitions:
        by_topic[name].append(partition)
    return by_topic


def _check_all_answered(
    what: str, asked: Iterable[TopicPartition], answered: Container[TopicPartition]
) -> None:
    for where in asked:
        if where not in answered:
            raise ProtocolError(f"{what} of {where}: the answer leaves it out")


def _check(
    code: int,
    api: str,
    group_id: str,
    where: TopicPartition | None = None,
    member_of: MemberOf | None = None,
) -> None:
    if code:
        raise _error(code, api, group_id, where, member_of)


def _error(
    code: int,
    api: str,
    group_id: str,
    where: TopicPartition | None = None,
    member_of: MemberOf | None = None,
) -> BrokerError:
    """Return the error of a code.

    Raises `CommitFailedError` if the error means that the commit is too late.
    """
    found = error_code(code)
    what = f"{api} of {where} for" if where else f"{api} of"
    error = refusal(
        found,
        f"{what} group {group_id!r}",
        advice=None if member_of else _ADVICE_FROM_OUTSIDE.get(found.name),
        topic=where.topic if where else "",
        group_id=group_id,
    )
    if member_of is not None and error.error.name == _STALE:
        error.remedy = Remedy.RETRY  # The next heartbeat brings the member's new epoch.
    if member_of is not None and found.name in _ADVICE:
        raise CommitFailedError(f"{error}. {_ADVICE[found.name]}") from error
    return error


def _refused(
    group_id: str, refusals: Mapping[TopicPartition, BrokerError], asked: int
) -> BrokerError:
    """Return one error for all partitions whose offsets the coordinator refused."""
    first = refusals[min(refusals)]
    others = asked - len(refusals)
    if len(refusals) == 1 and not others:
        return first
    names = ", ".join(map(str, sorted(refusals)))
    committed = f"the offsets of the other {others} partitions are committed" if others else None
    detail = "; ".join(filter(None, (first.detail, committed)))
    return BrokerError(first.error, f"OffsetCommit of {names} for group {group_id!r}", detail)
