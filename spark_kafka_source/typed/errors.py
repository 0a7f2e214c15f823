"""Errors in the values of records, as users see them."""

import codecs

from spark_kafka_source.errors import LocalError
from spark_kafka_source.secret import printable
from spark_kafka_source.topic_partition import TopicPartition

_MOST_SHOWN_BYTES = 32
_MOST_SHOWN_TEXT_BYTES = 400


def _shown(data: bytes) -> str:
    """Return the beginning of some bytes: as text where it is UTF-8, else in hexadecimal."""
    cut = data[:_MOST_SHOWN_TEXT_BYTES]
    try:
        # The cut may be within a character.
        text, size = codecs.utf_8_decode(cut, "strict", len(cut) == len(data))
    except UnicodeDecodeError:
        text, size = "", 0
    if not text or not "".join(text.split()).isprintable():
        size = min(len(data), _MOST_SHOWN_BYTES)
        text = data[:size].hex(" ") or "empty"
    text = printable(text)
    return f"{text} ... of {len(data)} bytes" if size < len(data) else text


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
        return (
            f"{self.topic_partition} at offset {self.offset}: the {self.column} cannot be decoded: "
            f"{self.reason}. It is {_shown(self.data)}. Option 'badRecords' lets it pass: "
            "'null' keeps its bytes in a column of errors, 'skip' leaves the record out, 'topic' "
            "sends it to the topic in 'badRecords.topic'"
        )
