"""Errors by the condition names of Spark's own Kafka connector, so that handlers keep working."""

from collections.abc import Iterable, Mapping

from spark_kafka_source.errors import KafkaError, LocalError, RemoteError
from spark_kafka_source.topic_partition import TopicPartition


class ConditionError(KafkaError):
    """An error with a condition's name; its text begins with it, in brackets, as Spark's do."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(condition, text)
        self.condition, self.text = condition, text

    def __str__(self) -> str:
        return f"[{self.condition}] {self.text}"


class OffsetMismatchError(ConditionError, LocalError):
    """The offsets given by option do not fit the partitions, or each other."""


class DataLossError(ConditionError, RemoteError):
    """Records that the query was to read are gone. Its condition is under KAFKA_DATA_LOSS."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(f"KAFKA_DATA_LOSS.{condition}", text)


def listed(items: Iterable[object], limit: int = 20) -> str:
    """A text that names the items, however many there are."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return ", ".join(texts[:limit]) + more


def start_does_not_match(
    option: str, given: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
) -> OffsetMismatchError:
    """The offsets of `option` name other partitions than those subscribed to."""
    given, assigned = set(given), set(assigned)
    return OffsetMismatchError(
        "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
        f"Option '{option}' must give an offset for each partition subscribed to and for no other "
        f"(-1 for latest, -2 for earliest); missing: {listed(sorted(assigned - given)) or 'none'}; "
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
