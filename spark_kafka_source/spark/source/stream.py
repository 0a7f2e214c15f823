"""Streaming: the driver plans the offsets of each micro-batch, and commits them.

One micro-batch, in the order of Spark's calls:

    latestOffset   the last one is finished: its offsets go to the group           _commit_finished
                   while nothing is new: a pause, or until a leader has news       _look_if_due
                   the ends of the logs; the group's assignment                    _look
                   new starts; the limits; the end of the micro-batch              _plan
    partitions     a range for each partition with records; tasks                  plan_tasks
    read           on the executors: fetch, check, decode                          read_ranges
    commit         Spark has ended it: its offsets go to the group                 _commit_finished

For each query Spark keeps one reader in a Python process of its own, and asks it at every trigger.
It only pickles a second reader, for `read`. So nothing is looked up before the first question.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from spark_kafka_source import groups
from spark_kafka_source.client import UNKNOWN_TOPIC
from spark_kafka_source.errors import BrokerError, ConfigurationError, KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.source.admission import (
    HAS_ADMISSION_CONTROL,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from spark_kafka_source.spark.source.bounds import FROM_LATEST
from spark_kafka_source.spark.source.cluster_moves import has_moved
from spark_kafka_source.spark.source.group_commits import GroupCommits
from spark_kafka_source.spark.source.idle_pace import IdlePace
from spark_kafka_source.spark.source.limits import Limits, limit_of, warn_of_early_end
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds, only
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.position import Position
from spark_kafka_source.spark.source.source_offset import INITIAL, SourceOffset
from spark_kafka_source.spark.source.tasks import KafkaInputPartition, plan_tasks, read_ranges
from spark_kafka_source.spark.source.topic_changes import (
    Gone,
    aged_out,
    check_pinned_end,
    gone_from,
    moved_starts,
    new_starts,
)

if TYPE_CHECKING:
    from spark_kafka_source.spark.source.managed_group import ManagedGroup

_MOST_LOOKS = 3
_NONE: Offsets = {}
# Spark waits for the answer to its question before it stops a query.
_JOIN_MS = 1_000


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream from `startingOffsets` (default latest) on, then from the checkpoint on."""

    def __init__(self, options: SourceOptions) -> None:
        if options.ending is not None:
            raise ConfigurationError(
                options.ending.option, "is given", "A stream has no end: leave it out"
            )
        self._options = options
        self._position = Position()
        self._ends = LogEnds({})
        self._gone: Gone = {}
        self._available_now = False
        self._pinned: LogEnds | None = None
        self._pace = IdlePace()

    # -- on the driver ---------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Return a constant: the first micro-batch looks up `startingOffsets`, and keeps them."""
        return INITIAL.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the first limit per trigger that is given: Spark takes only one."""
        return limit_of(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        """Make the next `latestOffset` pin the latest offsets. Later rows wait for the next run."""
        self._available_now = True

    def latestOffset(
        self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return the end of the next micro-batch; `start` again if nothing is new.

        `start` is the end of the last finished micro-batch, so it is committed to the group here.
        Spark before 4.2 gives neither argument; see `Position`. Raises `DataLossError` if records
        to read are gone, unless `failOnDataLoss` is false.
        """
        position = self._position
        if start is not None:
            position.move_to(start)
        with hiding(self._options.hidden):
            if position.is_finished:
                self._commit_finished(position.offset)
            end = self._look_if_due(position.offset, limit or self._own_limit)
        if end is position.offset:
            if self._available_now:
                self._commit_finished(end, is_last=True)
            return position.to_json()
        self._limits.batch_begins()
        return position.planned(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the last known ends of the logs, for the lag in the query's progress."""
        return SourceOffset(self._ends.offsets).to_json() if self._ends.offsets else None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """Return one task for each topic-partition with anything new, or as options say.

        A replay after a restart has the same tasks. Spark tells a restarted reader the query's
        position by asking for the tasks between it and itself: there are none.
        """
        if start == end:
            self._position.restarted(end)
            if not self._position.has_planned:
                warn_of_early_end(self._options, self._position.offset)
            return []
        before, after = SourceOffset.from_json(start), self._position.move_to(end)
        with hiding(self._options.hidden):
            starts, ends = self._planned(before, after)
        return plan_tasks(starts, ends, self._options)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Commit a finished micro-batch to the group, unless the query is a member of the group.

        A member has committed it in `latestOffset`. By now the group may have assigned a partition
        to others and back again, so a commit here could undo theirs.
        """
        if self._options.managed_group is None:
            self._commit_finished(SourceOffset.from_json(end))

    def stop(self) -> None:
        """Leave the group, and close the connections."""
        if "_planner" not in self.__dict__:
            return
        if self._group is not None:
            self._group.close()
        self._planner.close()

    # -- on the executors ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return a task's rows."""
        if not isinstance(partition, KafkaInputPartition):
            return iter(())
        return read_ranges(partition, self._options)

    # -- private ---------------------------------------------------------------------------------

    @cached_property
    def _planner(self) -> OffsetPlanner:
        return OffsetPlanner(self._options, goes_on=not self._position.offset.initial)

    @cached_property
    def _group(self) -> "ManagedGroup | None":
        if self._options.managed_group is None:
            return None
        # Only such queries import what a member of a group needs.
        from spark_kafka_source.spark.source.managed_group import ManagedGroup  # noqa: PLC0415

        return ManagedGroup(self._options, self._planner)

    @cached_property
    def _group_commits(self) -> GroupCommits | None:
        group_id = self._options.group_id
        if group_id is None:
            return None
        member_of = None if self._group is None else self._group.member
        commit = partial(groups.commit_offsets, member_of=member_of)
        return GroupCommits(self._planner.client, group_id, commit=commit)

    @cached_property
    def _limits(self) -> Limits:
        return Limits(self._options, self._planner.client)

    @cached_property
    def _own_limit(self) -> ReadLimit:
        """The limit on Spark before 4.2, which gives none."""
        return limit_of(self._options)

    def _has_moved(self, position: SourceOffset) -> bool:
        """Whether the query goes on in another cluster. Raises as `has_moved` does."""
        moved_to = self._options.moved_to_cluster
        # Only then must the brokers be asked, and most often they have said it by then.
        is_asked = moved_to is not None or position.cluster_id
        return bool(is_asked) and has_moved(position, self._planner.cluster_id(), moved_to)

    def _planned(self, before: SourceOffset, after: SourceOffset) -> tuple[Offsets, LogEnds]:
        """Return the starts and the ends of a micro-batch."""
        starts, ends = {**before.offsets, **after.starts}, _ends_at(after)
        if self._has_moved(after):
            # The other cluster planned this micro-batch, and it is run again here.
            ends = self._planner.log_ends(after.offsets)
            moved = moved_starts(after, ends, self._planner, self._options.data_loss)
            offsets = only(moved, after.offsets)
            starts |= {partition: min(starts[partition], at) for partition, at in offsets.items()}
            return starts, LogEnds(offsets, topic_ids=ends.topic_ids)
        if not after.follows(before):
            # Another release planned this micro-batch without its starts, or Spark's own connector.
            starts |= self._starts(before, ends)
        return starts, ends

    def _commit_finished(self, position: SourceOffset, *, is_last: bool = False) -> None:
        if self._has_moved(position):
            return  # Its leader epochs are of the other cluster. The next micro-batch is committed.
        if self._group is not None:
            # Only offsets that the query read as a member. By the next time the partitions may
            # belong to another member.
            position, is_last = self._group.read_as_member(position), True
        if self._group_commits is not None and not position.initial:
            self._group_commits.finished(position, is_last=is_last)

    def _look_up_ends(self, position: SourceOffset) -> LogEnds:
        # A pinned end lies ahead of the position. Its log, too, may fall back for a moment.
        latest = self._planner.log_ends((self._pinned or position).offsets)
        if not self._available_now:
            return latest
        self._pinned = self._pinned or latest
        check_pinned_end(self._pinned.offsets, latest.offsets)
        return self._pinned

    def _look_if_due(self, position: SourceOffset, limit: ReadLimit) -> SourceOffset:
        """Look as `_look` does, but not as often as Spark asks while nothing is new."""
        if self._pace.pause_seconds and not self._available_now and not self._group_changed():
            news = self._planner.news(self._ends, self._pace)
            # Rows that wait for `minOffsetsPerTrigger` may be due by time alone.
            if not news and position.offsets == self._ends.offsets:
                return position
        sent_before = self._planner.client.connections.requests_sent
        end = self._look(position, limit)
        while end is position and self._changed_after_others():
            end = self._look(position, limit)
        if end is position:
            requests = self._planner.client.connections.requests_sent - sent_before
            self._pace.found_nothing(requests, watched=self._planner.watches)
        else:
            self._pace.found_something()
            if self._group is not None:
                self._group.batch_planned()
        return end

    def _join_group(self) -> None:
        if self._group is None:
            return
        partitions = self._ends.offsets.keys()
        if not self._available_now:
            self._group.join(partitions, _JOIN_MS)
            return
        # Without waiting, the run would end with nothing read.
        timeout_ms = self._options.client.default_api_timeout_ms
        if not self._group.join(partitions, timeout_ms):
            raise KafkaTimeoutError(
                f"Group {self._options.group_id!r} has assigned nothing to this query within "
                f"{timeout_ms} ms (kafka.default.api.timeout.ms)"
            )

    def _group_changed(self) -> bool:
        """Poll the group. Return whether the assignment has changed since the last look."""
        return self._group is not None and self._forget_commits_if(self._group.changed())

    def _changed_after_others(self) -> bool:
        """Wait while other members read their part of a run over what is available.

        Return whether this query's assignment has changed.
        """
        if self._group is None or self._pinned is None:
            return False
        timeout_ms = self._options.client.default_api_timeout_ms
        changed = self._group.wait_for_others(self._pinned.offsets, timeout_ms)
        return self._forget_commits_if(changed)

    def _forget_commits_if(self, changed: bool) -> bool:
        """Forget the committed offsets, if other members may have committed more since."""
        if changed and self._group_commits is not None:
            self._group_commits.forget()
        return changed

    def _look(self, position: SourceOffset, limit: ReadLimit) -> SourceOffset:
        """Plan as `_plan` does with new ends, and again if a topic goes away meanwhile."""
        tries = refusals = 0
        deadline = Deadline.after_ms(self._options.client.default_api_timeout_ms)
        while True:
            try:
                self._ends = self._look_up_ends(position)
                self._join_group()
                return self._plan(position, limit)
            except groups.CommitFailedError:
                # The group rebalances again. The query takes its partitions over after that.
                if not self._available_now:
                    return position
                if deadline.expired:
                    raise
                refusals += 1
                time.sleep(self._planner.client.pause_seconds(refusals))
            except BrokerError as error:
                # The topic existed a moment ago, so the brokers are asked anew for all topics.
                tries += 1
                if error.error not in UNKNOWN_TOPIC or tries == _MOST_LOOKS:
                    raise

    def _plan(self, position: SourceOffset, limit: ReadLimit) -> SourceOffset:
        """Return the end of the next micro-batch, or `position` itself if nothing is new."""
        ends = self._ends
        before, taken_over = position, _NONE
        seen = ends
        if self._group is not None:
            before, ends, taken_over = self._group.share(position, ends)
            seen = self._seen_by_group(self._group, before, ends)
            ends = self._ends = ends if self._available_now else seen
        if position.initial and not ends.offsets:
            return position
        starts = {**taken_over, **self._starts(before, seen)}
        begin = {**before.offsets, **starts}
        may_wait = not starts and not self._available_now
        if may_wait and self._limits.are_to_wait(begin, ends.offsets, limit):
            return position
        if isinstance(limit, ReadMaxRows | ReadMaxBytes) and not self._options.data_loss.fails:
            starts = {**starts, **aged_out(begin, ends, self._planner, self._options.data_loss)}
            begin = {**begin, **starts}
        # Another member of the group may have read beyond a pinned end since.
        latest = {
            partition: max(at, begin.get(partition, at)) for partition, at in ends.offsets.items()
        }
        end = self._limits.ends(begin, latest, limit)
        nothing_new = not starts and (end == position.offsets or not end)
        if nothing_new and not position.initial:
            return position
        return _source_offset(end, starts, ends, first_of_run=not self._position.has_planned)

    def _seen_by_group(
        self, group: "ManagedGroup", position: SourceOffset, ends: LogEnds
    ) -> LogEnds:
        """Return the ends, looked up again if others have read beyond them, which is no loss.

        A member may read, commit and give up a partition after this query has looked up its end.
        """
        if all(ends.offsets.get(where, at) >= at for where, at in position.offsets.items()):
            return ends
        seen = self._planner.log_ends(position.offsets)
        # A partition that was added meanwhile is for the next look.
        return group.own(replace(seen, offsets=only(seen.offsets, ends.offsets)))

    def _starts(self, position: SourceOffset, ends: LogEnds) -> Offsets:
        """Return the starts of the partitions that do not go on from `position`."""
        if position.initial:
            return self._planner.resolve(self._options.starting or FROM_LATEST, ends.offsets)
        if has_moved(position, ends.cluster_id, self._options.moved_to_cluster):
            return moved_starts(position, ends, self._planner, self._options.data_loss)
        starts = new_starts(position, ends, self._planner, self._options.data_loss, self._gone)
        still_gone = {where: of for where, of in self._gone.items() if where not in ends.offsets}
        self._gone = {**still_gone, **gone_from(position, ends)}
        return starts


def _ends_at(position: SourceOffset) -> LogEnds:
    return LogEnds(
        position.offsets, position.leader_epochs, position.topic_ids, position.cluster_id
    )


def _source_offset(
    offsets: Offsets, starts: Offsets, ends: LogEnds, *, first_of_run: bool
) -> SourceOffset:
    """Return the offset of a micro-batch up to `offsets`, as the logs are at `ends`."""
    # Spark 4.2 and newer ask for the ends: `reportLatestOffset`.
    left = {} if HAS_ADMISSION_CONTROL else ends.offsets
    left = {partition: end for partition, end in left.items() if end > offsets[partition]}
    return SourceOffset(
        offsets,
        starts,
        ends.leader_epochs,
        ends.topic_ids,
        cluster_id=ends.cluster_id,
        log_ends=left,
        first_of_run=first_of_run and bool(left),
    )
