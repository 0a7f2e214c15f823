"""Errors with the condition names of Spark's own Kafka connector, so that handlers keep working."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spark_kafka_source.errors import KafkaError, LocalError, RemoteError, listed
from spark_kafka_source.logs import logger_of
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)


class ConditionError(KafkaError):
    """An error with a condition's name. Its text begins with it in brackets, as Spark's do."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(condition, text)
        self.condition, self.text = condition, text

    def _text(self) -> str:
        return f"[{self.condition}] {self.text}"


class OffsetMismatchError(ConditionError, LocalError):
    """The offsets of an option do not fit the partitions, or contradict each other."""


class DataLossError(ConditionError, RemoteError):
    """Records that the query should read are gone. Its condition is under KAFKA_DATA_LOSS."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(f"KAFKA_DATA_LOSS.{condition}", text)


@dataclass(frozen=True, slots=True)
class DataLoss:
    """The option `failOnDataLoss`."""

    fails: bool = True

    def report(self, error: DataLossError) -> None:
        """Raise the error, or log it. The caller then goes on with the records that are there."""
        if self.fails:
            raise error
        logger.warning("%s; going on, since failOnDataLoss is false", error)


class NullTopicError(ConditionError, LocalError):
    """A row to be written names no topic, and no option does."""


def does_not_match_assigned(
    option: str,
    given: Iterable[TopicPartition],
    assigned: Iterable[TopicPartition],
    *,
    timestamps: bool = False,
) -> OffsetMismatchError:
    """Return the error for offsets or timestamps of other partitions than the query reads."""
    given, assigned = set(given), set(assigned)
    kind = "TIMESTAMP" if timestamps else "START"
    return OffsetMismatchError(
        f"KAFKA_{kind}_OFFSET_DOES_NOT_MATCH_ASSIGNED",
        f"Option '{option}' must name each partition subscribed to and no other; missing: "
        f"{listed(sorted(assigned - given)) or 'none'}; "
        f"unknown: {listed(sorted(given - assigned)) or 'none'}",
    )


def partitions_differ(
    starts: Iterable[TopicPartition], ends: Iterable[TopicPartition]
) -> OffsetMismatchError:
    """Return the error for starting and ending offsets of different partitions."""
    starts, ends = set(starts), set(ends)
    return OffsetMismatchError(
        "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
        f"'startingOffsets' and 'endingOffsets' must name the same partitions; only at the start: "
        f"{listed(sorted(starts - ends)) or 'none'}; only at the end: "
        f"{listed(sorted(ends - starts)) or 'none'}",
    )


def start_after_end(
    topic_partition: TopicPartition, start: int, end: int, *, resolved: bool
) -> OffsetMismatchError:
    """Return the error for a range that ends before it starts: given, or found if `resolved`."""
    return OffsetMismatchError(
        f"{'RESOLVED' if resolved else 'UNRESOLVED'}_START_OFFSET_GREATER_THAN_END_OFFSET",
        f"{topic_partition}: the start offset {start} is greater than the end offset {end}; "
        "give an 'endingOffsets' at or after 'startingOffsets'",
    )


def partitions_deleted(gone: Iterable[TopicPartition]) -> DataLossError:
    """Return the error for partitions that were read from and no longer exist."""
    return DataLossError(
        "PARTITIONS_DELETED", f"{listed(sorted(gone))} existed at the last micro-batch and are gone"
    )


def partitions_left_out(left_out: Iterable[TopicPartition]) -> DataLossError:
    """Return the error for partitions that the query read, and that its options no longer name."""
    return DataLossError(
        "PARTITIONS_DELETED",
        f"The query no longer subscribes to {listed(sorted(left_out))}, which it read up to the "
        "last micro-batch. Name the topics again; or, to leave their newer records out, run the "
        "query once with failOnDataLoss=false, and the checkpoint forgets them",
    )


def partition_offset_changed(
    topic_partition: TopicPartition, before: int, now: int
) -> DataLossError:
    """Return the error for a partition that now ends before the offset that was read."""
    return DataLossError(
        "PARTITION_OFFSET_CHANGED",
        f"{topic_partition} was read up to offset {before} and now ends at {now}: its log was "
        "truncated, or the topic was deleted and made anew",
    )


def topics_recreated(names: Iterable[str], perhaps_in: str = "") -> DataLossError:
    """Return the error for topics that were deleted and created again since the last read.

    `perhaps_in` is the cluster's id, if the last read may have been of another cluster.
    """
    text = (
        f"Topics {listed(sorted(names))} were deleted and made anew since the last micro-batch: "
        "their topic ids changed, and the records that were not read before are gone"
    )
    if perhaps_in:
        text += (
            ". If instead they moved to this cluster with their offsets, give the option "
            f"'movedToCluster' as {perhaps_in!r}"
        )
    return DataLossError("PARTITIONS_DELETED", text)


def not_copied(topic_partition: TopicPartition, read: int, end: int) -> DataLossError:
    """Return the error for a copy of a partition that ends before the offset that was read."""
    return DataLossError(
        "PARTITION_OFFSET_CHANGED",
        f"{topic_partition} was read up to offset {read}, and in the cluster that 'movedToCluster' "
        f"names it ends at {end}: the records in between were not copied. Start the query again "
        "once they are, before anything else is written there",
    )


def log_truncated(topic_partition: TopicPartition, read: int, diverged: int) -> DataLossError:
    """Return the error for a log that has changed below the read offset.

    An unclean leader election does that.
    """
    return DataLossError(
        "PARTITION_OFFSET_CHANGED",
        f"{topic_partition} was read up to offset {read}, but its log was truncated at offset "
        f"{diverged} and holds other records from there on (an unclean leader election)",
    )


def start_offset_reset(
    option: str, topic_partition: TopicPartition, offset: int, earliest: int, latest: int
) -> DataLossError:
    """Return the error for an offset of an option that is outside of its partition's log."""
    return DataLossError(
        "START_OFFSET_RESET",
        f"Option '{option}': offset {offset} of {topic_partition} is not in its log, which has "
        f"offsets {earliest} to {latest}",
    )


def available_now_end_lost(gone: Iterable[TopicPartition]) -> OffsetMismatchError:
    """Return the error for lost partitions of a run's pinned end."""
    return OffsetMismatchError(
        "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
        f"{listed(sorted(gone))} were there when this run with Trigger.AvailableNow began, and are "
        "gone: a topic was deleted meanwhile. Run it again",
    )


def available_now_end_shrunk(
    topic_partition: TopicPartition, pinned: int, latest: int
) -> OffsetMismatchError:
    """Return the error for a partition that no longer reaches a run's pinned end."""
    return OffsetMismatchError(
        "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
        f"{topic_partition} was to be read up to offset {pinned} in this run with "
        f"Trigger.AvailableNow, and now ends at {latest}: its topic was made anew or its log "
        "truncated meanwhile. Run it again",
    )


def added_partition_not_from_zero(earliest: Mapping[TopicPartition, int]) -> DataLossError:
    """Return the error for new partitions that lost records before they were first seen."""
    return DataLossError(
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
        "Added partitions do not start at offset 0 but at "
        + listed(f"{partition}: {offset}" for partition, offset in sorted(earliest.items())),
    )


def cannot_read_range(text: str) -> DataLossError:
    """Return the error for a task that could not read its planned offsets."""
    return DataLossError("COULD_NOT_READ_OFFSET_RANGE", text)


def null_topic(row: str) -> NullTopicError:
    """Return the error for a null in the column `topic`. `row` names the row."""
    return NullTopicError(
        "KAFKA_NULL_TOPIC_IN_DATA",
        f"{row} has no topic: its column 'topic' is null. Give the option 'topic', which goes "
        "before the column, or leave such rows out",
    )
