"""Where positions begin: where the group has committed, or else by `auto.offset.reset`."""

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
"""What the group committed, asked for so many ms; partitions without an offset are left out."""

Wanted = Mapping[TopicPartition, ResetPolicy | None]
"""The policy to begin by, or None: where the group has committed."""


class Starts:
    """Finds starts, in any thread."""

    def __init__(
        self,
        committed: Committed,
        reset: ResetPolicy,
        isolation_level: IsolationLevel,
        on_answer: Callable[[], None],
    ) -> None:
        """`on_answer` is called whenever some starts are found."""
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

        Raises `NoOffsetError` where there is neither an offset nor a policy, `KafkaTimeoutError`,
        `BrokerError`.
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
        """Return those of which no record is as late as the policy says."""
        listed: dict[TopicPartition, OffsetAndTimestamp] = {}

        def share() -> None:
            new = {
                where: OffsetAndEpoch(at.offset, at.leader_epoch)
                for where, at in listed.items()
                if at.offset != NO_OFFSET
            }
            # In one go: what the consumer finds here, its next fetch asks for.
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
