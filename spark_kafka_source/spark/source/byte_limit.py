"""`maxBytesPerTrigger`: the end of a micro-batch, by samples of the logs.

Kafka tells offsets, not bytes. So each trigger samples a few record batches, where the micro-batch
begins and where it would end.
"""

from collections.abc import Callable, Mapping, Set
from statistics import fmean

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.fetch import sampled_bytes_per_offset
from spark_kafka_source.net import Conversation
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.planning import share_out
from spark_kafka_source.topic_partition import TopicPartition

Sizes = Mapping[TopicPartition, float]
"""Bytes per offset in each partition's log."""

_MOST_HALVINGS = 12
_TOLERANCE = 1.25
_MOST_ALONE = 32


class ByteLimit:
    """A limit of `max_bytes` of log, shared out in proportion to what waits in each partition."""

    def __init__(
        self,
        client: KafkaClient,
        max_bytes: int,
        *,
        sample: Callable[[KafkaClient, Offsets], Conversation[Sizes]] = sampled_bytes_per_offset,
    ) -> None:
        self._client = client
        self._max_bytes = max_bytes
        self._sample = sample
        self._learnt: dict[TopicPartition, float] = {}
        self._learnt_at: dict[TopicPartition, int] = {}
        self._samples = 0

    def ends(self, starts: Offsets, latest: Offsets) -> Offsets:
        """Return ends for about `max_bytes`, with at least one offset where anything waits.

        The size of records is assumed to change evenly between the two samples of a log. Ranges
        that are more than a quarter too large are halved until they fit, at most 12 times.
        """
        first = self._sizes({each: starts[each] for each in latest if starts[each] < latest[each]})
        ends = share_out(starts, latest, self._max_bytes, round(_bytes(starts, latest, first)))
        for _ in range(_MOST_HALVINGS):
            last = self._sizes({each: ends[each] - 1 for each in first})
            mean = {each: (first[each] + last[each]) / 2 for each in first}
            if _bytes(starts, ends, mean) <= _TOLERANCE * self._max_bytes:
                break
            ends = {
                each: end - (end - starts[each]) // 2 if each in first else end
                for each, end in ends.items()
            }
        return ends

    def _sizes(self, positions: Offsets) -> Sizes:
        """Return the sizes from these positions on. Unknown ones are the mean of the others."""
        missing = positions.keys() - self._learn(positions)
        # A broker sends even a batch larger than a sample if it is asked for this partition alone.
        # The partitions that were sampled longest ago come first.
        for each in sorted(missing, key=lambda each: self._learnt_at.get(each, 0))[:_MOST_ALONE]:
            self._learn({each: positions[each]})
        known = [self._learnt[each] for each in positions if each in self._learnt]
        otherwise = fmean(known) if known else 0.0
        return {each: self._learnt.get(each, otherwise) for each in positions}

    def _learn(self, positions: Offsets) -> Set[TopicPartition]:
        found = self._client.run(self._sample(self._client, positions))
        self._learnt.update(found)
        self._samples += 1
        self._learnt_at.update(dict.fromkeys(found, self._samples))
        return found.keys()


def _bytes(starts: Offsets, ends: Offsets, sizes: Sizes) -> float:
    return sum((ends[each] - starts[each]) * size for each, size in sizes.items())
