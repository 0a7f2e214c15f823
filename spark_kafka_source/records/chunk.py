"""A chunk: records of a fetch that become one Arrow record batch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spark_kafka_source.records.types import (
    Bytes,
    RecordLimit,
)
from spark_kafka_source.topic_partition import TopicPartition


class Segment(NamedTuple):
    """Records of a batch, all or a part: `record_count` of them in `data[start:end]`.

    All fields are integers, so that the segments of a chunk form one array.
    """

    start: int
    end: int
    record_count: int
    first_offset: int
    """The lowest offset that a record of the segment may have."""
    base_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    timestamp_type: int


class Parts:
    """Segments, and for each the buffer that it is in. Several may be in one."""

    __slots__ = ("buffers", "segments")

    def __init__(self, buffers: Sequence[Bytes], segments: Sequence[Segment]) -> None:
        self.buffers, self.segments = tuple(buffers), tuple(segments)

    def join(self) -> None:
        """Copy the segments into one buffer, unless one has them all."""
        if any(buffer is not self.buffers[0] for buffer in self.buffers):
            parts = zip(self.buffers, self.segments, strict=True)
            data = b"".join(memoryview(buffer)[part.start : part.end] for buffer, part in parts)
            self.buffers = (data,) * len(self.segments)
            self.segments = tuple(_end_to_end(self.segments))

    def before(self, offset: int) -> "Parts":
        """Return the segments that may have records before this offset."""
        kept = [
            buffer
            for buffer in zip(self.buffers, self.segments, strict=True)
            if buffer[1].first_offset < offset
        ]
        return Parts([buffer for buffer, _ in kept], [segment for _, segment in kept])


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records for one Arrow record batch, the input of stage 2: `to_arrow(chunk)`.

    `next_offset` is the offset to read from after this chunk, past any hidden records. It is at
    least `position` and at most `end`. `cut_batch_bytes` is the size in bytes of the batch that the
    end of the fetch cut, or 0. If a fetch begins with such a batch, repeat it with at least this
    size.
    """

    topic_partition: TopicPartition
    position: int
    end: int
    parts: Parts
    next_offset: int
    cut_batch_bytes: int = 0
    limit: RecordLimit = field(default_factory=RecordLimit)

    @property
    def data(self) -> Bytes:
        """The buffer with all records, in which `segments` are."""
        self.parts.join()
        return self.parts.buffers[0] if self.parts.buffers else b""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of `data`."""
        self.parts.join()
        return self.parts.segments

    @property
    def record_count(self) -> int:
        """The number of all records, also of records before `position` and from `end` on."""
        return sum(segment.record_count for segment in self.parts.segments)

    @property
    def size_bytes(self) -> int:
        """The size of the decompressed records in bytes."""
        return sum(segment.end - segment.start for segment in self.parts.segments)

    def before(self, offset: int) -> "Chunk":
        """Return only the records before this offset."""
        end = max(self.position, min(self.end, offset))
        next_offset = min(self.next_offset, end)
        return replace(self, end=end, parts=self.parts.before(offset), next_offset=next_offset)


def _end_to_end(segments: Iterable[Segment]) -> Iterator[Segment]:
    start = 0
    for segment in segments:
        end = start + segment.end - segment.start
        yield segment._replace(start=start, end=end)
        start = end
