"""A group's committed offsets, read and written by a member or by a client outside the group.

https://kafka.apache.org/protocol#The_Messages_OffsetCommit
"""

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

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
from spark_kafka_source.logs import logger_of
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
from spark_kafka_source.topic_partition import TopicPartition, each_partition, partitions_by_topic

logger = logger_of(__name__)

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

CommittedRow = OffsetFetchResponsePartition | OffsetFetchResponsePartitions
"""What an answer to OffsetFetch says of one partition, up to v7 or from v8 on."""

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

    Kafka's brokers say so only to members. Brokers of other makers say so to all clients.
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

    @classmethod
    def of(cls, row: CommittedRow) -> "OffsetAndMetadata":
        """Return the offset in an answer to OffsetFetch."""
        return cls(row.committed_offset, row.committed_leader_epoch, row.metadata or "")


async def commit_offsets(
    client: KafkaClient,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
    *,
    timeout_ms: int | None = None,
    member_of: MemberOf | None = None,
) -> None:
    """Commit the next offset to read of each partition for the group.

    A leader epoch lets the next reader notice a truncated log (KIP-320). The metadata are a short
    text that tools show. Without `member_of` the group must have no members, or Kafka answers
    UNKNOWN_MEMBER_ID.

    The commit is tried again after coordinator errors, and after a stale member epoch, for up to
    `timeout_ms` (default `default.api.timeout.ms`). It is tried again once after
    UNKNOWN_SERVER_ERROR, by which a broker does not say what is wrong. If partitions are refused,
    such as those of a deleted topic, the other offsets are committed. Then `BrokerError` names the
    group and the refused partitions. Raises `KafkaTimeoutError`. Raises `CommitFailedError` if
    `member_of` returns None, or a member that the group no longer knows.
    """
    with_metadata = {
        where: at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
        for where, at in offsets.items()
    }
    commit = _Commit(client, group_id, with_metadata, member_of, list(with_metadata))
    if offsets:
        what = f"OffsetCommit to group {group_id!r}"
        await client.retrying(what, commit.attempt, timeout_ms=timeout_ms)
    if commit.refusals:
        raise _refused(group_id, await commit.explained(), len(offsets))


@dataclass
class _Commit:
    """A commit over several tries: the partitions left to commit, and the final refusals."""

    client: KafkaClient
    group_id: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    member_of: MemberOf | None
    left: list[TopicPartition]
    refusals: dict[TopicPartition, BrokerError] = field(default_factory=dict)
    tries: int = 0
    was_unexplained: bool = False

    async def attempt(self, deadline: Deadline) -> None:
        """Commit the partitions that are left. Raises an error after which to try again."""
        key = CoordinatorKey.of_group(self.group_id)
        answer = await self.client.send_to_coordinator(
            self._request(), key, deadline, max_version=_COMMIT_BY_NAME
        )
        self._handle_answer(answer)

    def _request(self) -> OffsetCommitRequest:
        member = _committing_member(self.group_id, self.member_of)
        rows: dict[str, list[OffsetCommitRequestPartition]] = {}
        for name, number in self.left:
            at = self.offsets[TopicPartition(name, number)]
            row = OffsetCommitRequestPartition(number, at.offset, at.leader_epoch, at.metadata)
            rows.setdefault(name, []).append(row)
        topics = [OffsetCommitRequestTopic(name, partitions=rows[name]) for name in rows]
        return OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=topics,
        )

    def _handle_answer(self, answer: OffsetCommitResponse) -> None:
        codes = {where: row.error_code for where, row in each_partition(answer.topics)}
        _check_all_answered("OffsetCommit", self.left, codes)
        errors = {
            where: _error(codes[where], "OffsetCommit", self.group_id, where, self.member_of)
            for where in self.left
            if codes[where]
        }
        self.tries += 1
        again = {where: error for where, error in errors.items() if self._may_retry(error)}
        self.refusals |= {where: errors[where] for where in errors.keys() - again.keys()}
        self.left = list(again)
        if again:
            raise self._first_of(again)

    def _may_retry(self, error: BrokerError) -> bool:
        if error.error == _UNEXPLAINED:
            return not self.was_unexplained
        is_gone = error.error == _UNKNOWN_TOPIC and self.tries >= _TRIES_OF_UNKNOWN
        return error.retriable and not is_gone

    def _first_of(self, errors: Mapping[TopicPartition, BrokerError]) -> BrokerError:
        """Return the first error to try again after. Note an unexplained one: it counts once."""
        first = errors[min(errors)]
        unexplained = [where for where, error in errors.items() if error.error == _UNEXPLAINED]
        if unexplained:
            self.was_unexplained = True
            logger.warning("%s; trying again once", errors[min(unexplained)])
            first.remedy = first.remedy if first.retriable else Remedy.RETRY
        return first

    async def explained(self) -> Mapping[TopicPartition, BrokerError]:
        """Return the refusals. Those of too large metadata say by how much to shorten it."""
        too_large = [where for where, error in self.refusals.items() if error.error == _TOO_LARGE]
        most = await _most_metadata(self.client, self.group_id) if too_large else None
        for where in too_large:
            error = self.refusals[where]
            # Brokers count as Java does: a character outside of the first 65,536 is two.
            size = len(self.offsets[where].metadata.encode("utf-16-le", "surrogatepass")) // 2
            limit = "allows fewer, 4096 by default: shorten it"
            if most is not None:
                limit = f"is {most}: shorten it by {max(size - most, 1)}"
            text = (
                f"the metadata has {size} characters, and the brokers' 'offset.metadata.max.bytes'"
            )
            self.refusals[where] = BrokerError(error.error, error.what, f"{text} {limit}")
        return self.refusals


async def committed_offsets(
    client: KafkaClient, group_id: str, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the group's committed offsets, read from outside.

    Partitions without one are left out.
    """
    by_partition = await committed(client, group_id, topic_partitions)
    return {partition: offset.offset for partition, offset in by_partition.items()}


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
        answer = await _fetch(client, group_id, member_of, topic_partitions, deadline)
        # From v8 on an answer has the groups apart (KIP-709).
        group = answer.groups[0] if answer.groups else answer
        if has_no_group(group.error_code):
            return {}
        if group.error_code:
            raise _error(group.error_code, "OffsetFetch", group_id, member_of=member_of)
        offsets = {}
        rows: Iterable[tuple[TopicPartition, CommittedRow]] = each_partition(group.topics)
        for where, row in rows:
            if has_no_group(row.error_code):
                return {}
            if row.error_code:
                raise _error(row.error_code, "OffsetFetch", group_id, where)
            offsets[where] = OffsetAndMetadata.of(row)
        _check_all_answered("OffsetFetch", topic_partitions, offsets)
        return {where: offsets[where] for where in topic_partitions if offsets[where].offset >= 0}

    return await client.retrying(
        f"OffsetFetch of group {group_id!r}", attempt, timeout_ms=timeout_ms
    )


async def _most_metadata(client: KafkaClient, group_id: str) -> int | None:
    """Return the coordinator's `offset.metadata.max.bytes`, or None if it does not tell."""
    key = CoordinatorKey.of_group(group_id)
    # Only this error needs them.
    from spark_kafka_source.client.configs import numbers_set_at  # noqa: PLC0415

    async def attempt(deadline: Deadline) -> int | None:
        coordinator = await client.coordinator(key, deadline)
        limits = await numbers_set_at(client, coordinator, [_MOST_METADATA], deadline)
        return limits.get(_MOST_METADATA)

    try:
        return await client.retrying("DescribeConfigs", attempt, timeout_ms=_CONFIG_MS)
    except KafkaError:  # The commit's own error counts.
        return None


def _committing_member(group_id: str, member_of: MemberOf | None) -> Member:
    if member_of is None:
        return Member(group_id, NO_MEMBER_ID, NO_GENERATION)
    member = member_of()
    if member is None:
        raise CommitFailedError(
            f"Group {group_id!r}: this consumer is in no generation of its group now: the group "
            "rebalances, or has given its partitions to others since it did not poll in time"
        )
    return member


async def _fetch(
    client: KafkaClient,
    group_id: str,
    member_of: MemberOf | None,
    topic_partitions: Iterable[TopicPartition],
    deadline: Deadline,
) -> OffsetFetchResponse:
    """Return the answer to the best request that the broker supports."""
    by_topic = partitions_by_topic(topic_partitions)
    topics = [OffsetFetchRequestTopic(name, numbers) for name, numbers in by_topic.items()]
    member = None if member_of is None else member_of()
    requests = []
    if member is not None:
        group = OffsetFetchRequestGroup(
            group_id,
            member.member_id,
            member.generation_id,
            [OffsetFetchRequestTopics(name, partition_indexes=by_topic[name]) for name in by_topic],
        )
        several = OffsetFetchRequest(groups=[group], require_stable=True)
        requests.append((several, _FETCH_BY_NAME))
    for require_stable in (False,) if member_of is None else (True, False):
        alone = OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)
        requests.append((alone, _FETCH_ONE_GROUP))
    key = CoordinatorKey.of_group(group_id)
    *better, (oldest, oldest_version) = requests
    for request, version in better:
        with suppress(UnsupportedVersionError):
            return await client.send_to_coordinator(request, key, deadline, max_version=version)
    return await client.send_to_coordinator(oldest, key, deadline, max_version=oldest_version)


def _check_all_answered(
    what: str, asked: Iterable[TopicPartition], answered: Container[TopicPartition]
) -> None:
    for where in asked:
        if where not in answered:
            raise ProtocolError(f"{what} of {where}: the answer leaves it out")


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
    error_type = error_code(code)
    what = f"{api} of {where} for" if where else f"{api} of"
    error = refusal(
        error_type,
        f"{what} group {group_id!r}",
        advice=None if member_of else _ADVICE_FROM_OUTSIDE.get(error_type.name),
        topic=where.topic if where else "",
        group_id=group_id,
    )
    if member_of is not None and error.error.name == _STALE:
        error.remedy = Remedy.RETRY  # The next heartbeat brings the member's new epoch.
    if member_of is not None and error_type.name in _ADVICE:
        raise CommitFailedError(f"{error}. {_ADVICE[error_type.name]}") from error
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
