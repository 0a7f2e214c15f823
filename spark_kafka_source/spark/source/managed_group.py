"""A query as a member of its Kafka group: it reads only the partitions that the group assigns.

So queries can share a group's partitions. The assignment changes between two micro-batches. A query
commits partitions before it gives them up, and reads new ones from the group's offsets.
See "Queries that share a group" in docs/groups-and-lag.md.
"""

import signal
import sys
from collections.abc import Collection
from dataclasses import replace

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.fetch.offsets import OffsetAndEpoch
from spark_kafka_source.groups import (
    Member,
    commit_offsets,
    committed,
    committed_offsets,
    new_membership,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, readable, run
from spark_kafka_source.spark.source.bounds import FROM_LATEST
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds, only
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

_LEAVE_MS = 10_000
# How often a run over what is available asks how far the other members are.
_LOOK_MS = 500
_PROCESS_OF_A_QUERY = "pyspark.sql.streaming.python_streaming_source_runner"


class ManagedGroup:
    """A query's membership of its group. The query polls it between two micro-batches.

    Another thread sends heartbeats, however long a micro-batch takes.
    """

    def __init__(self, options: SourceOptions, planner: OffsetPlanner) -> None:
        if options.managed_group is None:
            raise ValueError("the query is not to be a member of a group")
        self._config = options.managed_group
        self._options = options
        self._planner = planner
        self._membership = new_membership(KafkaClient(options.client), self._config, self)
        self._topics: frozenset[str] = frozenset()
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._taken_over: set[TopicPartition] = set()
        self._changed = False
        if _in_process_of_a_query():
            signal.signal(signal.SIGTERM, _end_in_order)

    def close(self) -> None:
        """Leave the group. Other members take over at once."""
        if _in_process_of_a_query():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        run(self._membership.close(Deadline.after_ms(_LEAVE_MS)))

    def member(self) -> Member | None:
        """Return the member that commits; see `Membership.member`."""
        return self._membership.member

    def read_as_member(self, position: SourceOffset) -> SourceOffset:
        """Return the part of a query's position that it has read since the group assigned it."""
        read = self._membership.assignment - self._taken_over
        return replace(position, offsets=only(position.offsets, read))

    def changed(self) -> bool:
        """Poll the group. Return whether the assignment changed; True before the first `join`."""
        if not self._topics:
            return True
        run(self._membership.poll())
        changed, self._changed = self._changed, False
        return changed

    def join(self, partitions: Collection[TopicPartition], timeout_ms: int) -> bool:
        """Subscribe to the topics of all these partitions, and wait for an assignment.

        Return whether there is one.
        """
        deadline = Deadline.after_ms(timeout_ms)
        topics = frozenset(partition.topic for partition in partitions)
        if self._topics != topics:
            self._topics = topics
            self._membership.subscribe(self._topics)
        elif self._partitions != frozenset(partitions):
            # The query looks more often than the group's leader, which divides what it has seen.
            self._membership.look_at_topics()
        self._partitions = frozenset(partitions)
        run(self._membership.poll())
        while self._membership.member is None and not deadline.expired:
            readable([self._membership], deadline)
            run(self._membership.poll())
        return self._membership.member is not None

    def wait_for_others(self, ends: Offsets, timeout_ms: int) -> bool:
        """Wait while other members read up to `ends`. Return whether the assignment has changed.

        Otherwise the group has committed all of `ends`, or has committed nothing new for
        `timeout_ms`. Then a warning names the partitions that other members still hold.
        """
        known: Offsets = {}
        deadline = Deadline.after_ms(timeout_ms)
        while not self.changed():
            left = self._left_to_others(ends)
            if not left:
                return False
            if left != known:
                known, deadline = left, Deadline.after_ms(timeout_ms)
            if deadline.expired:
                texts = [f"{where} at offset {at} of {ends[where]}" for where, at in left.items()]
                logger.warning(
                    "Group %r: other members have committed nothing for %s ms; left to them: %s",
                    self._config.group_id,
                    timeout_ms,
                    ", ".join(texts),
                )
                return False
            readable([self._membership], Deadline.after_ms(min(_LOOK_MS, timeout_ms)))
        return True

    def _left_to_others(self, ends: Offsets) -> Offsets:
        """Return the committed offsets of other members' partitions that are before `ends`."""
        others = sorted(ends.keys() - self._membership.assignment)
        by_group = self._planner.client.run(
            committed_offsets(self._planner.client, self._config.group_id, others)
        )
        offsets = {partition: by_group.get(partition, 0) for partition in others}
        return {partition: at for partition, at in offsets.items() if at < ends[partition]}

    def share(self, position: SourceOffset, ends: LogEnds) -> tuple[SourceOffset, LogEnds, Offsets]:
        """Return the assigned part of the position and of the ends, and the new partitions' starts.

        A newly assigned partition begins at the group's offset, or at this query's, if that is
        later after a restart from the checkpoint. A partition without an offset in the group begins
        by `startingOffsets`; if the group has offsets of its topic, it was added, and begins at its
        start. The starts are committed, so that the next owner has them.
        """
        own_ends = self.own(ends)
        known = position.offsets
        new = self._taken_over | (own_ends.offsets.keys() - known.keys())
        taken_over = [partition for partition in sorted(own_ends.offsets) if partition in new]
        starts = self._starts(taken_over, position, ends, own_ends) if taken_over else {}
        kept = (self._membership.assignment & known.keys()) - starts.keys()
        places = {partition: _place(position, partition) for partition in kept} | starts
        shared = replace(
            position,
            offsets={partition: at.offset for partition, at in places.items()},
            leader_epochs={
                partition: at.leader_epoch
                for partition, at in places.items()
                if at.leader_epoch >= 0
            },
            initial=False,
        )
        return shared, own_ends, {partition: at.offset for partition, at in starts.items()}

    def own(self, ends: LogEnds) -> LogEnds:
        """Return the ends of the partitions that the group assigns to this query."""
        assignment = self._membership.assignment
        topics = {partition.topic for partition in assignment}
        return LogEnds(
            only(ends.offsets, assignment),
            only(ends.leader_epochs, assignment),
            {name: topic_id for name, topic_id in ends.topic_ids.items() if name in topics},
            ends.cluster_id,
        )

    def batch_planned(self) -> None:
        """Note that a micro-batch is planned from the last result of `share`."""
        self._taken_over.clear()

    def _starts(
        self,
        taken_over: Collection[TopicPartition],
        position: SourceOffset,
        ends: LogEnds,
        own_ends: LogEnds,
    ) -> dict[TopicPartition, OffsetAndEpoch]:
        topics = {partition.topic for partition in taken_over}
        by_group = self._planner.client.run(
            committed(
                self._planner.client,
                self._config.group_id,
                [partition for partition in ends.offsets if partition.topic in topics],
            )
        )
        known = by_group.keys() | position.offsets.keys()
        new = [partition for partition in taken_over if partition not in known]
        unknown = self._unknown_starts(new, {partition.topic for partition in by_group}, own_ends)
        starts = {partition: OffsetAndEpoch(at) for partition, at in unknown.items()}
        for partition in set(taken_over) - unknown.keys():
            places = [_place(position, partition)] if partition in position.offsets else []
            group_offset = by_group.get(partition)
            if group_offset is not None:
                # A group's offset comes with its own epoch, perhaps that of a later leader.
                places.append(OffsetAndEpoch(group_offset.offset, group_offset.leader_epoch))
            starts[partition] = max(places, default=OffsetAndEpoch(0))
        self._commit(
            {
                partition: at.offset
                for partition, at in starts.items()
                if partition not in by_group or by_group[partition].offset != at.offset
            }
        )
        texts = [f"{partition} from offset {starts[partition].offset}" for partition in taken_over]
        logger.info("Group %r: takes over %s", self._config.group_id, ", ".join(texts))
        return starts

    def _unknown_starts(
        self, unknown: Collection[TopicPartition], known_topics: Collection[str], own_ends: LogEnds
    ) -> Offsets:
        added = [partition for partition in unknown if partition.topic in known_topics]
        first = {
            partition: own_ends.offsets[partition]
            for partition in unknown
            if partition.topic not in known_topics
        }
        starting = self._options.starting or FROM_LATEST
        return {
            **self._planner.earliest(added),
            **(self._planner.resolve(starting, first) if first else {}),
        }

    def _commit(self, offsets: Offsets) -> None:
        """Commit starts, so that the next owner has them even if this query commits no more."""
        if offsets:
            self._planner.client.run(
                commit_offsets(
                    self._planner.client, self._config.group_id, offsets, member_of=self.member
                )
            )

    # -- called by the membership ------------------------------------------------------------------

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Drop partitions. Finished micro-batches are committed by now, and none is in flight."""
        self._drop("gives up", partitions)

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Note new partitions. `share` looks up their starts, once the ends are known."""
        self._taken_over |= set(partitions)
        self._changed = True

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Drop partitions. Others may have read again what this query read and did not commit."""
        self._drop("has lost", partitions)

    def _drop(self, what: str, partitions: Collection[TopicPartition]) -> None:
        self._taken_over -= set(partitions)
        self._changed = True
        names = ", ".join(map(str, sorted(partitions))) or "nothing"
        logger.info("Group %r: %s %s", self._config.group_id, what, names)


def _in_process_of_a_query() -> bool:
    """Whether this is a query's own process, which Spark stops by SIGTERM, more than once."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == _PROCESS_OF_A_QUERY


def _end_in_order(number: int, _: object) -> None:
    """Exit, so that Spark's program stops the reader first: the query leaves its group."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _place(position: SourceOffset, where: TopicPartition) -> OffsetAndEpoch:
    return OffsetAndEpoch(position.offsets[where], position.leader_epochs.get(where, -1))
