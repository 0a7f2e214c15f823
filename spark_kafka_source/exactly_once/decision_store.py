"""The store of decisions: offsets of groups, written in transactions under the control id."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from spark_kafka_source.admin.transactions import (
    Begun,
    describe_transactions,
)
from spark_kafka_source.client import CoordinatorKey, KafkaClient
from spark_kafka_source.denials import Access, refusal
from spark_kafka_source.errors import BrokerError, ProtocolError, error_named
from spark_kafka_source.exactly_once.decision import (
    METADATA_BYTES,
    OF_0_2,
    Decision,
    LastDecisions,
    NoDecisionError,
    Part,
    StoredDecision,
    joined,
)
from spark_kafka_source.exactly_once.errors import OtherDriverError, PrefixIsGroupError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import Confirmed
from spark_kafka_source.groups import Member, OffsetAndMetadata, has_no_group
from spark_kafka_source.groups.member import NO_GENERATION, NO_MEMBER_ID
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.producer import (
    Generation,
    ProducerFencedError,
    ProducerId,
    TransactionCoordinator,
)
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest, OffsetFetchRequestTopic
from spark_kafka_source.topic_partition import TopicPartition, each_partition

T = TypeVar("T")

# A control transaction is open for some milliseconds. In any case the next driver aborts it.
_CONTROL_TIMEOUT_MS = 60_000
# This version reads all topics of one group, and only stable offsets (KIP-447).
_OFFSET_FETCH = 7
# Another driver may write between the reads of two parts, unless it is fenced.
_MOST_READS = 3
_NOT_THE_LAST = {"INVALID_PRODUCER_ID_MAPPING", "INVALID_TXN_STATE"}
"""Errors, besides fencing, with which a coordinator answers a driver that is fenced."""
_TOO_LARGE = "OFFSET_METADATA_TOO_LARGE"
_NO_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
_NOT_COORDINATOR = error_named("NOT_COORDINATOR")


class DecisionStore:
    """Read the last decisions under a prefix, and write the next one.

    The writing methods take the result of `fence` as `control`. They raise `OtherDriverError` once
    another driver has called `fence`.
    """

    def __init__(
        self, client: KafkaClient, names: Names, generation: Generation = Generation.FIRST
    ) -> None:
        self._client, self._names, self._generation = client, names, generation
        self._coordinator = TransactionCoordinator(client, names.control_id, generation)

    async def fence(self) -> ProducerId:
        """Fence all other drivers, and return the id and epoch with which this one can write.

        A decision that another driver has not finished is aborted.
        """
        return await self._coordinator.init_producer_id(_CONTROL_TIMEOUT_MS)

    async def record(
        self, control: ProducerId, decision: Decision, wheres: Iterable[TopicPartition]
    ) -> None:
        """Write a decision at each of these partitions. It becomes valid by `decide`.

        Its offset is the number of the micro-batch. The readers here take any offset, but version
        0.2.0 does not.
        """
        for part, text in enumerate(decision.parts()):
            offset = OffsetAndMetadata(decision.batch.batch_id, metadata=text)
            await self._record(control, part, dict.fromkeys(wheres, offset))

    async def _record(
        self, control: ProducerId, part: int, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        member = Member(self._names.group_id(part), NO_MEMBER_ID, NO_GENERATION)
        await self._of_last_driver(partial(self._coordinator.add_offsets, control, member.group_id))
        await self._of_last_driver(
            partial(self._coordinator.commit_offsets, control, member, offsets)
        )

    async def decide(self, control: ProducerId) -> ProducerId:
        """Commit the recorded decision, at once and for good. Return the id and epoch after it."""
        return await self._of_last_driver(partial(self._coordinator.end, control, commit=True))

    async def undo(self, control: ProducerId) -> ProducerId:
        """Abort the begun transaction without a decision. Return the id and epoch after it."""
        return await self._of_last_driver(partial(self._coordinator.end, control, commit=False))

    async def confirmed(self, control: ProducerId, where: TopicPartition) -> Confirmed:
        """Return the last decisions as the group's present coordinator tells them.

        A former coordinator that stood still, or is cut off, still answers from memory. But it
        cannot take an offset, since no other broker copies its log. So this writes an offset of
        `where`, aborts that, and believes the broker that took it. Late copies of that offset must
        not replace a decision: the result has the next epoch, to go on with. Raises the errors of
        `last_decisions`.
        """
        key = CoordinatorKey.of_group(self._names.group_id(0))
        control_id = self._names.control_id
        what = f"a look at the last decisions in {key}"
        after = control

        async def attempt(deadline: Deadline) -> LastDecisions:
            nonlocal after
            await self._record(after, 0, {where: OffsetAndMetadata(0)})
            taker = self._client.cluster.coordinators.get(key)
            after = await self.undo(after)
            decisions = await self.last_decisions(where)
            # Each look-up of a coordinator makes a new object.
            if taker is None or self._client.cluster.coordinators.get(key) is not taker:
                raise BrokerError(_NOT_COORDINATOR, what)
            return decisions

        last_decisions = await self._client.retrying(what, attempt)
        begun = {control_id: Begun(after)}
        found = (await describe_transactions(self._client, begun, begun=begun))[control_id]
        if after == control:  # In the first generation an end leaves the epoch as it was.
            renew = partial(self._coordinator.init_producer_id, _CONTROL_TIMEOUT_MS, control)
            after = await self._of_last_driver(renew)
        return Confirmed(after, last_decisions, found)

    async def last_decisions(
        self, where: TopicPartition | None = None, *, require_stable: bool = True
    ) -> LastDecisions:
        """Return the last decision of each write; none that the brokers have forgotten.

        `where` is a partition whose offset may hold a decision. With `require_stable`, the call
        waits for a decision that a driver is about to make. Raises `PrefixIsGroupError` if the
        group has other offsets, and `ProtocolError` if a decision cannot be read.
        """
        for _ in range(_MOST_READS):
            try:
                return await self._read(where, require_stable=require_stable)
            except ValueError as error:
                failure = error
        what = f"the last decision in group {self._names.group_id(0)!r} cannot be read"
        raise ProtocolError(f"{what}: {failure}") from failure

    async def _read(
        self, waits_for: TopicPartition | None, *, require_stable: bool
    ) -> LastDecisions:
        heads = await self._heads(waits_for, require_stable=require_stable)
        copies = _last_of_each(heads)
        parts = {wheres: [heads[wheres[0]]] for wheres in copies}
        for place in range(1, max((each.count for (each,) in parts.values()), default=1)):
            longer = [wheres for wheres in copies if parts[wheres][0].count > place]
            asked = [wheres[0] for wheres in longer]
            offsets = await self._committed(place, asked, require_stable=require_stable)
            for wheres in longer:
                if wheres[0] not in offsets:
                    raise ValueError(f"group {self._names.group_id(place)!r} has no part of it")
                parts[wheres].append(Part.parse(offsets[wheres[0]].metadata))
        return LastDecisions(
            tuple(StoredDecision(each, joined(self._names, parts[each])) for each in copies)
        )

    async def _heads(
        self, waits_for: TopicPartition | None, *, require_stable: bool
    ) -> dict[TopicPartition, Part]:
        """Return the first parts of all decisions in the group, by partition."""
        if waits_for is not None:
            # Brokers before 4.0 show decisions only soon after the end of their transactions, in
            # their order. A request that names a partition waits for the one that is to come there.
            await self._committed(0, [waits_for], require_stable=require_stable)
        heads: dict[TopicPartition, Part] = {}
        for partition, offset in (await self._committed(0, require_stable=require_stable)).items():
            try:
                heads[partition] = Part.parse(offset.metadata)
            except NoDecisionError as error:
                reason = f"{partition} is committed there at offset {offset.offset}: {error}"
                raise PrefixIsGroupError(self._names.prefix, reason) from error
        known = {where: head for where, head in heads.items() if head.version != OF_0_2}
        last = max((head.batch.batch_id for head in known.values()), default=-1)
        if any(head.batch.batch_id > last for head in heads.values()):
            raise ValueError("version 0.2 has made it: run the query once with version 0.3")
        return known

    async def _committed(
        self,
        place: int,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a group's committed offsets, of all partitions or of some."""
        group_id = self._names.group_id(place)
        what = f"OffsetFetch of group {group_id!r}"
        topics = None
        if partitions is not None:
            topics = [OffsetFetchRequestTopic(name, [number]) for name, number in partitions]
        request = OffsetFetchRequest(group_id, topics, require_stable=require_stable)
        key = CoordinatorKey.of_group(group_id)

        def check(code: int) -> None:
            if code:
                raise refusal(code, what, group_id=group_id, access=Access.WRITE)

        async def attempt(deadline: Deadline) -> dict[TopicPartition, OffsetAndMetadata]:
            answer = await self._client.send_to_coordinator(
                request, key, deadline, max_version=_OFFSET_FETCH
            )
            rows = dict(each_partition(answer.topics))
            codes = [answer.error_code, *(row.error_code for row in rows.values())]
            if any(map(has_no_group, codes)):
                return {}
            for code in codes:
                check(code)
            offsets = {where: OffsetAndMetadata.of(row) for where, row in rows.items()}
            return {where: offset for where, offset in offsets.items() if offset.offset >= 0}

        return await self._client.retrying(what, attempt)

    async def _of_last_driver(self, call: Callable[[], Conversation[T]]) -> T:
        try:
            return await call()
        except BrokerError as error:
            if isinstance(error, ProducerFencedError) or error.error.name in _NOT_THE_LAST:
                raise OtherDriverError(self._names.prefix, str(error)) from error
            if error.error.name == _TOO_LARGE:
                detail = f"decisions need {METADATA_BYTES} of 'offset.metadata.max.bytes'"
                raise BrokerError(error.error, error.what, f"{detail} of the brokers") from error
            raise


def _last_of_each(heads: Mapping[TopicPartition, Part]) -> list[tuple[TopicPartition, ...]]:
    """Return where the last decision of each write is kept: at several partitions, each alike.

    An earlier one may still be at another partition: the topics of a column vary.
    """
    wheres: dict[str, list[TopicPartition]] = {}
    newest: dict[str, tuple[int, int]] = {}
    for where, head in sorted(heads.items()):
        write, number = head.write, (head.batch.batch_id, head.number)
        if number > newest.get(write, (-1, -1)):
            newest[write], wheres[write] = number, []
        if number == newest[write]:
            wheres[write].append(where)
    return sorted(map(tuple, wheres.values()))


async def existing(
    client: KafkaClient, topic_partitions: Iterable[TopicPartition]
) -> TopicPartition | None:
    """Return a partition whose topic is not deleted. If there is none, no reader waits.

    A topic with another error, as one without a leader, counts as one that exists.
    """
    by_topic = {partition.topic: partition for partition in topic_partitions}
    for topic in await client.retrying("Metadata", partial(client.topics, by_topic)):
        if topic.error.name != _NO_TOPIC:
            return by_topic[topic.name]
    return None
