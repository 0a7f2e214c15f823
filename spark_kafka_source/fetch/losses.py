"""Errors for records that are gone: deleted by age or request, with their topic, or truncated."""

from spark_kafka_source.errors import RemoteError, error_named
from spark_kafka_source.topic_partition import TopicPartition

OFFSET_OUT_OF_RANGE = error_named("OFFSET_OUT_OF_RANGE")


class RecordsLostError(RemoteError):
    """Records of a partition are not there any more. `offset` is the first that was not read."""

    def __init__(self, topic_partition: TopicPartition, offset: int, *details: int) -> None:
        super().__init__(topic_partition, offset, *details)
        self.topic_partition, self.offset = topic_partition, offset


class OffsetOutOfRangeError(RecordsLostError):
    """The log does not have the offset any more, or does not have it yet.

    `held_up` is the end of the log if the log has the offset, but an open transaction lets readers
    of committed records see only the offsets before `latest`.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        offset: int,
        earliest: int,
        latest: int,
        held_up: int | None = None,
    ) -> None:
        super().__init__(topic_partition, offset, earliest, latest)
        self.args = (topic_partition, offset, earliest, latest, held_up)
        self.earliest, self.latest, self.held_up = earliest, latest, held_up

    def _text(self) -> str:
        if self.held_up is not None:
            return (
                f"{self.topic_partition}: offset {self.offset} is beyond the last stable offset, "
                f"{self.latest}: a transaction is open there, and the log ends at {self.held_up}; "
                "wait until it ends, or read with isolation level 'read_uncommitted'"
            )
        return (
            f"{self.topic_partition}: offset {self.offset} is not in the log, which has offsets "
            f"{self.earliest} to {self.latest}; records were deleted or the topic made anew"
        )


class TopicGoneError(RecordsLostError):
    """The topic was deleted, and perhaps made anew."""

    def _text(self) -> str:
        return f"{self.topic_partition} from offset {self.offset} on: its topic was deleted"


class LogTruncatedError(RecordsLostError):
    """The log holds other records than before, from offset `diverged` on (KIP-320)."""

    def __init__(self, topic_partition: TopicPartition, offset: int, diverged: int) -> None:
        super().__init__(topic_partition, offset, diverged)
        self.diverged = diverged

    def _text(self) -> str:
        return (
            f"{self.topic_partition}: the log was truncated at offset {self.diverged} and holds "
            "other records from there on (an unclean leader election)"
        )
