"""Errors by the condition names of Spark's own Kafka connector, so that handlers keep working."""

from collections.abc import Iterable, Mapping

from spark_kafka_source.errors import KafkaError, LocalError, RemoteError
from spark_kafka_source.topic_partition import TopicPartition


class ConditionError(KafkaError):
    """An error with a condition's name; its text begins with it, in brackets, as Spark's do."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(condition, text)
        self.condition, self.text = condition, text

    def _text(self) -> str:
        return f"[{self.condition}] {self.text}"


class OffsetMismatchError(ConditionError, LocalError):
    """The offsets given by option do not fit the partitions, or each other."""


class DataLossError(ConditionError, RemoteError):
    """Records that the query was to read are gone. Its condition is under KAFKA_DATA_LOSS."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(f"KAFKA_DATA_LOSS.{condition}", text)


class NullTopicError(ConditionError, LocalError):
    """A row to be written says no topic, and no option does."""


def listed(items: Iterable[object], limit: int = 20) -> str:
    """A text that names the items, however many there are."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return ", ".join(texts[:limit]) + more


def does_not_match_assigned(
    option: str,
    given: Iterable[TopicPartition],
    assigned: Iterable[TopicPartition],
    *,
    timestamps: bool = False,
) -> OffsetMismatchError:
    """The offsets or timestamps of `option` name other partitions than those subscribed to."""
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
    """Starting and ending offsets name different partitions."""
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
    """A range that ends before it starts, as given, or as found on the broker when `resolved`."""
    return OffsetMismatchError(
        f"{'RESOLVED' if resolved else 'UNRESOLVED'}_START_OFFSET_GREATER_THAN_END_OFFSET",
        f"{topic_partition}: the start offset {start} is greater than the end offset {end}; "
        "give an 'endingOffsets' at or after 'startingOffsets'",
    )


def partitions_deleted(gone: Iterable[TopicPartition]) -> DataLossError:
    """Partitions that the query has read from no longer exist."""
    return DataLossError(
        "PARTITIONS_DELETED", f"{listed(sorted(gone))} existed at the last micro-batch and are gone"
    )


def partition_offset_changed(
    topic_partition: TopicPartition, before: int, now: int
) -> DataLossError:
    """A partition's end lies before what was read already."""
    return DataLossError(
        "PARTITION_OFFSET_CHANGED",
        f"{topic_partition} was read up to offset {before} and now ends at {now}: its log was "
        "truncated, or the topic was deleted and made anew",
    )


def topics_recreated(names: Iterable[str]) -> DataLossError:
    """Topics were deleted, and others of the same names created, since they were last read."""
    return DataLossError(
        "PARTITIONS_DELETED",
        f"Topics {listed(sorted(names))} were deleted and made anew since the last micro-batch: "
        "their topic ids changed, and what was not read before is gone",
    )


def log_truncated(topic_partition: TopicPartition, read: int, diverged: int) -> DataLossError:
    """What was read is no longer what the log holds, as after an unclean leader election."""
    return DataLossError(
        "PARTITION_OFFSET_CHANGED",
        f"{topic_partition} was read up to offset {read}, but its log was truncated at offset "
        f"{diverged} and holds other records from there on (an unclean leader election)",
    )


def start_offset_reset(
    option: str, topic_partition: TopicPartition, offset: int, earliest: int, latest: int
) -> DataLossError:
    """An offset given by option is not in its partition's log."""
    return DataLossError(
        "START_OFFSET_RESET",
        f"Option '{option}': offset {offset} of {topic_partition} is not in its log, which has "
        f"offsets {earliest} to {latest}",
    )


def initial_offset_not_found(topic_partitions: Iterable[TopicPartition]) -> DataLossError:
    """Partitions went away before their first offset was known."""
    return DataLossError(
        "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
        f"{listed(sorted(topic_partitions))} went away before their first offset was known",
    )


def available_now_end_lost(gone: Iterable[TopicPartition]) -> OffsetMismatchError:
    """Partitions of a run's pinned end are gone."""
    return OffsetMismatchError(
        "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
        f"{listed(sorted(gone))} were there when this run with Trigger.AvailableNow began, and are "
        "gone: a topic was deleted meanwhile. Run it again",
    )


def available_now_end_shrunk(
    topic_partition: TopicPartition, pinned: int, latest: int
) -> OffsetMismatchError:
    """A partition no longer reaches a run's pinned end."""
    return OffsetMismatchError(
        "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
        f"{topic_partition} was to be read up to offset {pinned} in this run with "
        f"Trigger.AvailableNow, and now ends at {latest}: its topic was made anew or its log "
        "truncated meanwhile. Run it again",
    )


def added_partition_not_from_zero(earliest: Mapping[TopicPartition, int]) -> DataLossError:
    """New partitions lost records before they were first seen."""
    return DataLossError(
        "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
        "Added partitions do not start at offset 0 but at "
        + listed(f"{each}: {offset}" for each, offset in sorted(earliest.items())),
    )


def cannot_read_range(text: str) -> DataLossError:
    """A task could not read the offsets that it was planned to."""
    return DataLossError("COULD_NOT_READ_OFFSET_RANGE", text)


def null_topic(row: str) -> NullTopicError:
    """A row has a null in the column `topic`; `row` says which."""
    return NullTopicError(
        "KAFKA_NULL_TOPIC_IN_DATA",
        f"{row} has no topic: its column 'topic' is null. Give the option 'topic', which goes "
        "before the column, or leave such rows out",
    )
