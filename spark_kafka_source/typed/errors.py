"""Errors in the values of records, as users see them."""

from spark_kafka_source.errors import LocalError
from spark_kafka_source.topic_partition import TopicPartition

_MOST_SHOWN_BYTES = 32


class BadRecordError(LocalError):
    """A record's key or value cannot be decoded, and `badRecords` is `fail`."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        offset: int,
        column: str,
        reason: str,
        data: bytes,
    ) -> None:
        super().__init__(topic_partition, offset, column, reason, data)
        self.topic_partition, self.offset = topic_partition, offset
        self.column, self.reason, self.data = column, reason, data

    def _text(self) -> str:
        shown = self.data[:_MOST_SHOWN_BYTES].hex(" ")
        more = f" ... of {len(self.data)} bytes" if len(self.data) > _MOST_SHOWN_BYTES else ""
        return (
            f"{self.topic_partition} at offset {self.offset}: the {self.column} cannot be decoded: "
            f"{self.reason}. It is {shown or 'empty'}{more}. Option 'badRecords' lets it pass: "
            "'null' keeps its bytes in a column of errors, 'skip' leaves the record out, 'topic' "
            "sends it to the topic in 'badRecords.topic'"
        )
