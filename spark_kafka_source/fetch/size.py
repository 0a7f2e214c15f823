"""The size of fetches for partitions that are read to an end."""

from collections.abc import Iterable, Iterator, Sequence

from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.positions import Position

# A longer wait comes from the network, not from the broker.
_LONG_WAIT_SECONDS = 0.01
# By default answers grow to 2 MiB, and to 8 MiB from a distant broker. Larger ones were slower.
_NEAR_GROWTH, _FAR_GROWTH = 2, 8
# Each range costs a little in each request, even if the answer does not reach it.
_MOST_RANGES = 64
# A batch that does not fit comes in a later answer, as the first one.
_LEAST_BYTES = 64 * 1024
_MARGIN = 2


class FetchSize:
    """The size of the next answer of one broker, for all its partitions together.

    An answer has the partitions in the order of the request, until its size is reached. So a large
    range is read alone, in answers that fit a cache, and many small ranges come in one answer.
    After a full answer the next one is larger, up to a limit. The limit is higher if the reader had
    to wait: so a distant broker is read as fast as a near one. Without waits answers shrink again.
    If `max.partition.fetch.bytes` is given, the part of each partition stays within it.
    """

    def __init__(self, config: FetchConfig) -> None:
        self._config = config
        self._bytes_per_offset: dict[str, float] = {}
        self.answer_bytes = config.max_partition_fetch_bytes
        self._most_of_partition = (
            config.max_partition_fetch_bytes if config.limits_partitions else config.fetch_max_bytes
        )

    def answered(self, size_bytes: int, waited_seconds: float) -> None:
        """Note the size of an answer, and the time that the reader has waited for it."""
        if size_bytes < self.answer_bytes // 2:
            return
        near_bytes, far_bytes = self._limit(_NEAR_GROWTH), self._limit(_FAR_GROWTH)
        if waited_seconds > _LONG_WAIT_SECONDS:
            self.answer_bytes = max(self.answer_bytes, min(2 * self.answer_bytes, far_bytes))
        elif self.answer_bytes > near_bytes:
            self.answer_bytes = max(self.answer_bytes // 2, near_bytes)
        else:
            self.answer_bytes = max(self.answer_bytes, min(2 * self.answer_bytes, near_bytes))

    def brought(self, position: Position, size_bytes: int, offsets: int) -> None:
        """Note the bytes of a number of offsets of a partition."""
        if offsets > 0:
            self._bytes_per_offset[position.topic_partition.topic] = size_bytes / offsets

    def of_partition(self, position: Position) -> int:
        """Return the bytes to ask for of one partition: not much more than its range may have."""
        if position.end is None:
            return max(self._config.max_partition_fetch_bytes, position.batch_bytes)
        most_bytes = min(self.answer_bytes, self._most_of_partition)
        expected_bytes = self._expected_bytes(position, position.end)
        if expected_bytes:
            most_bytes = min(most_bytes, max(int(_MARGIN * expected_bytes), _LEAST_BYTES))
        return max(most_bytes, position.batch_bytes)

    def of_answer(self, positions: Sequence[Position], most_bytes: int) -> int:
        """Return the bytes to ask for in all: at most `most_bytes`, or a cut batch's size."""
        if any(position.end is not None for position in positions):
            most_bytes = min(most_bytes, self.answer_bytes)
        return max([most_bytes, *(position.batch_bytes for position in positions)])

    def first_of(self, positions: Iterable[Position]) -> Iterator[Position]:
        """Yield the positions for the next fetch. Ranges are limited to those that may fit."""
        count, left_bytes = 0, _MARGIN * float(self.answer_bytes)
        for position in positions:
            if position.end is not None:
                if left_bytes <= 0 or count == _MOST_RANGES:
                    continue
                count += 1
                expected_bytes = self._expected_bytes(position, position.end)
                left_bytes -= min(expected_bytes, self._most_of_partition)
            yield position

    def _limit(self, growth: int) -> int:
        config = self._config
        return min(config.max_partition_fetch_bytes * growth, config.fetch_max_bytes)

    def _expected_bytes(self, position: Position, end: int) -> float:
        """Return the expected bytes of the rest of a range, or 0 if the topic is unknown."""
        bytes_per_offset = self._bytes_per_offset.get(position.topic_partition.topic, 0.0)
        return bytes_per_offset * (end - position.fetch_offset)
