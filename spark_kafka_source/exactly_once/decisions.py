"""Where decisions are kept: in offsets of groups, written in transactions under the control id."""

from spark_kafka_source.client import CoordinatorKey, KafkaClient
from spark_kafka_source.denials import Access, lacking
from spark_kafka_source.errors import BrokerError, ProtocolError, error_code
from spark_kafka_source.exactly_once.decision import Decision, part_count
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.groups.member import NO_GENERATION, NO_MEMBER_ID
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import ProducerId, TransactionCoordinator
from spark_kafka_source.protocol import OffsetFetchRequest
from spark_kafka_source.topic_partition import TopicPartition

# A control transaction is open for some milliseconds. It is aborted by the next driver anyway.
_CONTROL_TIMEOUT_MS = 60_000
# All topics of one group, and only what no transaction is about to change (KIP-447).
_OFFSET_FETCH = 7


class Decisions:
    """Reads the last decision under a prefix, and writes the next."""

    def __init__(self, client: KafkaClient, names: Names) -> None:
        self._client = client
        self._names = names
        self._coordinator = TransactionCoordinator(client, names.control_id)

    def fence(self) -> ProducerId:
        """Return by what decisions can be written from now on, and by nobody else.

        A decision that another driver has not finished is undone.
        """
        return self._coordinator.init_producer_id(_CONTROL_TIMEOUT_MS)

    def record(self, control: ProducerId, decision: Decision, where: TopicPartition) -> None:
        """Write a decision, which counts once it is decided."""
        for part, text in enumerate(decision.parts()):
            group_id = self._names.group_id(part)
            member = Member(group_id, NO_MEMBER_ID, NO_GENERATION)
            offset = OffsetAndMetadata(decision.batch.batch_id, metadata=text)
            self._coordinator.add_offsets(control, group_id)
            self._coordinator.commit_offsets(control, member, {where: offset})

    def decide(self, control: ProducerId) -> None:
        """Make what was recorded count, at once and for good."""
        self._coordinator.end(control, commit=True)

    def last(self) -> Decision | None:
        """Return the last decision; None where there was none, or brokers have forgotten it."""
        found = self._committed(0)
        if not found:
            return None
        # At another topic the one before may stand still.
        where = max(found, key=lambda each: found[each].offset)
        try:
            count = part_count(found[where].metadata)
        except ValueError as error:
            what = f"group {self._names.group_id(0)!r} has other offsets than decisions"
            raise ProtocolError(f"{what}, and so cannot be a prefix: {error}") from error
        parts = [found[where].metadata]
        for part in range(1, count):
            other = self._committed(part).get(where)
            if other is None:
                raise ProtocolError(f"group {self._names.group_id(part)!r} has no part {part}")
            parts.append(other.metadata)
        return Decision.parse(self._names, parts)

    def _committed(self, part: int) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all offsets of a group that no transaction is about to change."""
        group_id = self._names.group_id(part)
        what = f"OffsetFetch of group {group_id!r}"
        request = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=True)
        key = CoordinatorKey.of_group(group_id)

        def check(code: int) -> None:
            if code:
                error = error_code(code)
                detail = lacking(error, group_id=group_id, access=Access.WRITE)
                raise BrokerError(error, what, detail)

        def attempt(deadline: Deadline) -> dict[TopicPartition, OffsetAndMetadata]:
            answer = self._client.send_to_coordinator(
                request, key, deadline, max_version=_OFFSET_FETCH
            )
            check(answer.error_code)
            found = {}
            for topic in answer.topics:
                for each in topic.partitions:
                    check(each.error_code)
                    found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                        each.committed_offset, metadata=each.metadata or ""
                    )
            return {where: each for where, each in found.items() if each.offset >= 0}

        return self._client.retrying(what, attempt)
