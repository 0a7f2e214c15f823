"""The most bytes of a topic's batches: by the settings, and by the batches that leaders refused.

A leader refuses a batch beyond the topic's `max.message.bytes`, and does not say the limit.
"""

from collections import OrderedDict
from dataclasses import dataclass

from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.records import HEADER_BYTES, Codec, EncodedBatch
from spark_kafka_source.records.split import COMPRESSED_ROOM

_MOST_TOPICS = 1_000
"""The most topics that are remembered. The topic that was refused the longest ago is forgotten."""

_FULL_BATCHES_AT_FIRST = 10
_FULL_BATCHES = 100
_MOST_FULL_BATCHES = 1_600
"""The numbers of full batches after which a larger batch is tried. The first try comes soon, as the
size was guessed. After a failed try the next one comes late, and later each time: it doubles."""

_RATIO_WORSENS, _RATIO_IMPROVES = 0.05, 0.005
"""The steps of the ratio, as in Java's `CompressionRatioEstimator`."""

_REQUEST_BYTES = 48
"""The most bytes of a Produce request besides its strings and partitions."""
_PARTITION_BYTES = 24
"""The most bytes of a partition in a request, besides the topic's name and the batch."""


@dataclass(slots=True)
class _Learnt:
    """The sizes of encoded batches of one topic that leaders took and refused."""

    most_bytes: int
    ratio: float
    """Encoded bytes for each byte of records."""
    largest_accepted: int = 0
    full_bytes: int = 0
    """The bytes of full batches since `most_bytes` changed."""
    patience: int = _FULL_BATCHES_AT_FIRST

    def records_bytes(self) -> int:
        """Return the most bytes of records whose batch is probably taken."""
        room = 1 if self.ratio == 1 else COMPRESSED_ROOM
        return max(int((self.most_bytes - HEADER_BYTES) * room / self.ratio), 1)

    def refused(self, size: int) -> None:
        """Go back to the largest batch that was taken, or to a fourth of this size.

        With half of it, batches of several partitions would be refused too often on the way down.
        """
        if 0 < self.largest_accepted < size <= self.most_bytes:  # It was a try.
            later = max(self.patience * 2, _FULL_BATCHES)
            self.patience = min(later, _MOST_FULL_BATCHES)
        if self.largest_accepted >= size:  # The limit is lower by now.
            self.largest_accepted = 0
        self.most_bytes = min(self.most_bytes, self.largest_accepted or size // 4)
        self.full_bytes = 0

    def accepted(self, size: int) -> None:
        """Count full batches, and allow a larger one after many of them."""
        self.largest_accepted = max(self.largest_accepted, size)
        self.most_bytes = max(self.most_bytes, size)
        if 2 * size > self.most_bytes:
            self.full_bytes += size
        if self.full_bytes >= self.patience * self.most_bytes:
            self.most_bytes, self.full_bytes = self.most_bytes * 5 // 4, 0


class BatchSizes:
    """The most bytes of batches. The producer's thread learns them, any thread may ask."""

    def __init__(self, config: ProducerConfig) -> None:
        named = len(config.client.connection.client_id) + len(config.transactional_id)
        self._most = min(config.batch_size, config.buffer_memory)
        self._request_bytes = config.max_request_size
        self.overhead = _REQUEST_BYTES + 3 * named  # A character has three bytes at most.
        """The most bytes of a request without its partitions."""
        self._learnt: OrderedDict[str, _Learnt] = OrderedDict()

    def of_records(self, topic: str) -> int:
        """Return the size at which a batch of this topic is full, before compression.

        A request with one such batch is within `max.request.size`. A single record may be larger.
        """
        in_request = self._request_bytes - self.overhead - partition_bytes(topic) - HEADER_BYTES
        most = min(self._most, max(in_request, 1))
        learnt = self._learnt.get(topic)
        return most if learnt is None else min(most, learnt.records_bytes())

    def of_encoded(self, topic: str) -> int | None:
        """Return the size beyond which leaders refuse batches, or None if they refused none."""
        learnt = self._learnt.get(topic)
        return None if learnt is None else learnt.most_bytes

    def refused(self, topic: str, batch: EncodedBatch) -> int:
        """Note that a leader finds a batch too large. Return the size of its parts."""
        learnt = self._learnt.pop(topic, None) or _Learnt(batch.size, ratio_of(batch))
        learnt.ratio = max(learnt.ratio, ratio_of(batch))
        learnt.refused(batch.size)
        self._learnt[topic] = learnt
        if len(self._learnt) > _MOST_TOPICS:
            self._learnt.popitem(last=False)
        return learnt.most_bytes

    def accepted(self, topic: str, batch: EncodedBatch) -> None:
        """Note that a leader took a batch."""
        learnt = self._learnt.get(topic)
        if learnt is None:
            return
        ratio = ratio_of(batch)
        step = _RATIO_WORSENS if ratio > learnt.ratio else -_RATIO_IMPROVES
        learnt.ratio = max(learnt.ratio + step, ratio)
        learnt.accepted(batch.size)


def partition_bytes(topic: str) -> int:
    """Return the most bytes of one partition in a request, without its batch."""
    return _PARTITION_BYTES + len(topic)


def ratio_of(batch: EncodedBatch) -> float:
    """Return the encoded bytes for each byte of a batch's records."""
    return 1.0 if batch.codec is Codec.NONE else batch.size / batch.uncompressed_bytes
