"""Start offsets: the group's committed offsets, or offsets by `auto.offset.reset`."""

from collections.abc import Callable, Collection, Mapping

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.fetch.offset_reset import LATEST, NoOffsetError, ResetPolicy
from spark_kafka_source.fetch.offsets import (
    NO_OFFSET,
    OffsetAndEpoch,
    OffsetAndTimestamp,
    offsets_for_times,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.topic_partition import TopicPartition

Committed = Callable[
    [KafkaClient, Collection[TopicPartition], int], Mapping[TopicPartition, OffsetAndEpoch]
]
"""A function of the client, the partitions and the timeout in ms.

It returns the group's committed offsets, without partitions that have none."""

Wanted = Mapping[TopicPartition, ResetPolicy | None]
"""The reset policy of each partition. None stands for the committed offset."""


class Starts:
    """Finder of start offsets, for any thread."""

    def __init__(
        self,
        committed: Committed,
        reset: ResetPolicy,
        isolation_level: IsolationLevel,
        on_answer: Callable[[], None],
    ) -> None:
        """Keep what `find` needs. `find` calls `on_answer` whenever it has found some starts."""
        self._committed = committed
        self._reset = reset
        self._isolation_level = isolation_level
        self._on_answer = on_answer

    def find(
        self,
        client: KafkaClient,
        wanted: Wanted,
        found: dict[TopicPartition, OffsetAndEpoch],
        timeout_ms: int,
    ) -> None:
        """Put each start into `found` as soon as its answer is here.

        Raises `NoOffsetError` if a partition has neither an offset nor a policy. Raises
        `KafkaTimeoutError` and `BrokerError`, too.
        """
        deadline = Deadline.after_ms(timeout_ms)
        uncommitted = [where for where, policy in wanted.items() if policy is None]
        if uncommitted:
            found.update(self._committed(client, uncommitted, timeout_ms))
            self._on_answer()
        policies = {
            where: policy or self._reset for where, policy in wanted.items() if where not in found
        }
        nowhere = [where for where, policy in policies.items() if policy.is_none]
        if nowhere:
            raise NoOffsetError(nowhere)
        late = self._list(client, policies, found, deadline)
        self._list(client, dict.fromkeys(late, LATEST), found, deadline)

    def _list(
        self,
        client: KafkaClient,
        policies: Mapping[TopicPartition, ResetPolicy],
        found: dict[TopicPartition, OffsetAndEpoch],
        deadline: Deadline,
    ) -> list[TopicPartition]:
        """Return the partitions that have no record as late as the policy's timestamp."""
        listed: dict[TopicPartition, OffsetAndTimestamp] = {}

        def share() -> None:
            new = {
                where: OffsetAndEpoch(at.offset, at.leader_epoch)
                for where, at in listed.items()
                if at.offset != NO_OFFSET
            }
            # One update for all: the next fetch asks for the starts that the consumer finds here.
            found.update(new)
            self._on_answer()

        offsets_for_times(
            client,
            {where: policy.timestamp_now() for where, policy in policies.items()},
            self._isolation_level,
            timeout_ms=deadline.remaining_ms(),
            found=listed,
            on_answer=share,
        )
        return [where for where, at in listed.items() if at.offset == NO_OFFSET]
