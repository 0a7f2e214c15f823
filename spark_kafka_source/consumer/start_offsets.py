"""Start offsets: the group's committed offsets, or offsets by `auto.offset.reset`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.fetch.offset_reset import LATEST, NoOffsetError, ResetPolicy
from spark_kafka_source.fetch.offsets import (
    NO_OFFSET,
    OffsetAndEpoch,
    OffsetAndTimestamp,
    offsets_for_times,
)
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.topic_partition import TopicPartition

Committed = Callable[
    [Collection[TopicPartition], int], Conversation[Mapping[TopicPartition, OffsetAndMetadata]]
]
"""A conversation about the partitions, with a timeout in ms.

It returns the group's committed offsets, without partitions that have none."""

StartPolicies = Mapping[TopicPartition, ResetPolicy | None]
"""The reset policy of each partition. None stands for the committed offset."""


@dataclass(frozen=True, eq=False, slots=True)
class StartOffsets:
    """Finder of start offsets."""

    client: KafkaClient
    committed: Committed
    reset: ResetPolicy
    isolation_level: IsolationLevel

    async def find(
        self,
        policies: StartPolicies,
        offsets: dict[TopicPartition, OffsetAndEpoch],
        timeout_ms: int,
    ) -> None:
        """Put each start into `offsets` as soon as its answer is here.

        Raises `NoOffsetError` if a partition has neither an offset nor a policy. Raises
        `KafkaTimeoutError` and `BrokerError`, too.
        """
        deadline = Deadline.after_ms(timeout_ms)
        uncommitted = [where for where, policy in policies.items() if policy is None]
        if uncommitted:
            committed = await self.committed(uncommitted, timeout_ms)
            for where, at in committed.items():
                offsets[where] = OffsetAndEpoch(at.offset, at.leader_epoch)
        missing = {
            where: policy or self.reset
            for where, policy in policies.items()
            if where not in offsets
        }
        nowhere = [where for where, policy in missing.items() if policy.is_none]
        if nowhere:
            raise NoOffsetError(nowhere)
        late = await self._list(missing, offsets, deadline)
        await self._list(dict.fromkeys(late, LATEST), offsets, deadline)

    async def _list(
        self,
        policies: Mapping[TopicPartition, ResetPolicy],
        offsets: dict[TopicPartition, OffsetAndEpoch],
        deadline: Deadline,
    ) -> list[TopicPartition]:
        """Return the partitions that have no record as late as the policy's timestamp."""

        def share(listed: Mapping[TopicPartition, OffsetAndTimestamp]) -> None:
            for where, at in listed.items():
                if at.offset != NO_OFFSET:
                    offsets[where] = OffsetAndEpoch(at.offset, at.leader_epoch)

        listed = await offsets_for_times(
            self.client,
            {where: policy.timestamp_now() for where, policy in policies.items()},
            self.isolation_level,
            timeout_ms=deadline.remaining_ms(),
            on_answer=share,
        )
        return [where for where, at in listed.items() if at.offset == NO_OFFSET]
