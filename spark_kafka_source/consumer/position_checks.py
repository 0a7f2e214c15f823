"""Whether positions still stand in the log that was read (KIP-320), and what to do where not."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from spark_kafka_source.client import LOOKUP_MS, Cluster, KafkaClient, Lookups
from spark_kafka_source.consumer.fetcher import is_checked
from spark_kafka_source.consumer.log_checks import out_of_range
from spark_kafka_source.consumer.losses import LogTruncatedError, RecordsLostError, TopicGoneError
from spark_kafka_source.consumer.offset_reset import ResetPolicy
from spark_kafka_source.consumer.offsets import epoch_end_offsets
from spark_kafka_source.consumer.partition_lookups import PartitionLookups
from spark_kafka_source.consumer.positions import Position, Positions
from spark_kafka_source.errors import BrokerError
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class _Log(NamedTuple):
    """What is to be compared: where the epoch of a position ends, in the log of this leader."""

    reached_epoch: int
    leader_epoch: int


class PositionChecks:
    """Asks new leaders how far their logs reach, and goes on by the reset policy where records are
    lost. Nothing in it waits."""

    def __init__(
        self,
        client: KafkaClient,
        positions: Positions,
        reset: ResetPolicy,
        lookups: Lookups,
        later: Callable[[Position], None],
    ) -> None:
        """`later` is told of positions that are to be looked at again after a pause."""
        self._client = client
        self._positions = positions
        self._reset = reset
        self._later = later
        self._woken = lookups.done.wake
        self._ends: PartitionLookups[_Log, int] = PartitionLookups(
            lookups,
            positions,
            self._find_ends,
            is_current=self._is_current,
            on_answer=self._compare,
            on_none=later,
        )
        self._losses: PartitionLookups[int, RecordsLostError] = PartitionLookups(
            lookups,
            positions,
            _find_losses,
            is_current=_is_there,
            on_answer=_raise_loss,
            on_none=later,
        )

    def take(self) -> None:
        """Take what leaders have said since. Raises kinds of `RecordsLostError`."""
        self._losses.take()
        self._ends.take()

    @property
    def is_due(self) -> bool:
        """Whether `look` would ask anything now."""
        return not all(map(self._ends.is_asked, self._unchecked()))

    def look(self) -> None:
        """Where the leader is a new one, ask how far its log reaches. Raises as `take` does."""
        moved: dict[TopicPartition, _Log] = {}
        for where, (topic_id, leader_epoch) in self._unchecked().items():
            each = self._positions[where]
            if each.is_elsewhere(topic_id):
                self._made_anew(each)
            elif leader_epoch < each.checked_epoch:
                # The broker that described the topic is behind those that wrote to it.
                self._client.cluster.forget_leaders()
                self._later(each)
            elif each.next is not None and each.next.leader_epoch >= 0:
                moved[where] = _Log(each.next.leader_epoch, leader_epoch)
            else:
                each.checked_epoch = leader_epoch
        self._ends.ask(moved)

    def is_in_doubt(self, position: Position) -> bool:
        """Whether what was fetched ahead may be of a log that was cut since."""
        if position.next is None or position.next.leader_epoch < 0:
            return False
        log = log_of(self._client.cluster, position)
        if log is None or position.is_elsewhere(log[0]):
            return False
        return log[1] > position.checked_epoch

    def out_of_range(self, position: Position) -> None:
        """Go on by the policy; without one, find out what there is to read instead."""
        if position.fetched:
            return  # What is here comes first, and this will be asked for again.
        where, offset = position.topic_partition, position.fetch_offset
        if self._reset.is_none:
            self._losses.ask({where: offset})
            self._later(position)
            return
        logger.warning("%s: offset %d is not in the log; going on by the policy", where, offset)
        position.reset(self._reset)

    def _unchecked(self) -> dict[TopicPartition, tuple[UUID, int]]:
        """Return the logs of positions whose leader is another than the one seen last."""
        now_seconds = time.monotonic()
        return {
            each.topic_partition: log
            for each in self._positions
            if each.next is not None
            and each.not_before_seconds <= now_seconds
            and (log := log_of(self._client.cluster, each)) is not None
            and not is_checked(each, *log)
        }

    def _find_ends(
        self,
        client: KafkaClient,
        logs: Mapping[TopicPartition, _Log],
        found: dict[TopicPartition, int],
    ) -> None:
        epochs = {where: log.reached_epoch for where, log in logs.items()}
        epoch_end_offsets(client, epochs, timeout_ms=LOOKUP_MS, found=found, on_answer=self._woken)

    def _is_current(self, position: Position, log: _Log) -> bool:
        """Whether neither the position nor the leader has moved on to another epoch since."""
        if position.next is None or position.next.leader_epoch != log.reached_epoch:
            return False
        found = log_of(self._client.cluster, position)
        return found is not None and found[1] == log.leader_epoch

    def _compare(self, position: Position, log: _Log, end: int) -> None:
        """`end` is where the epoch of the position ends, in the log that was asked about."""
        if position.next is not None and 0 <= end < position.next.offset:
            where = position.topic_partition
            self._truncated(position, LogTruncatedError(where, position.next.offset, end))
        elif 0 <= end < position.fetch_offset:
            position.refetch()  # What was fetched ahead may be of the log that was cut.
        position.checked_epoch = log.leader_epoch

    def _made_anew(self, position: Position) -> None:
        """The topic was deleted and made anew: its offsets are those of other records."""
        if position.next is None or position.fetched:
            self._later(position)  # What is here comes first.
            return
        error = TopicGoneError(position.topic_partition, position.next.offset)
        if self._reset.is_none:
            raise error
        logger.warning("%s; another has its name, going on there by the policy", error)
        position.topic_id, position.checked_epoch = None, -1
        position.reset(self._reset)

    def _truncated(self, position: Position, error: LogTruncatedError) -> None:
        if self._reset.is_none:
            raise error
        logger.warning("%s; going on there", error)
        position.seek(error.diverged)


def log_of(cluster: Cluster, position: Position) -> tuple[UUID, int] | None:
    """Return the topic's id and the leader's epoch; None where no leader is known.

    In one look: another thread may learn meanwhile that there is none.
    """
    where = position.topic_partition
    try:
        _, leader_epoch = cluster.leader(where)
    except BrokerError:
        return None
    return cluster.topics[where.topic].topic_id, leader_epoch


def _is_there(position: Position, offset: int) -> bool:
    return position.next is not None and position.next.offset == offset


def _find_losses(
    client: KafkaClient,
    offsets: Mapping[TopicPartition, int],
    found: dict[TopicPartition, RecordsLostError],
) -> None:
    for where, offset in offsets.items():
        found[where] = out_of_range(client, where, offset)


def _raise_loss(_: Position, __: int, error: RecordsLostError) -> None:
    raise error
