"""`maxBytesPerTrigger`: how far a micro-batch may read, by the sizes that logs are learnt to have.

Kafka tells offsets, not bytes. So a few record batches are looked at where a micro-batch begins and
where it would end, at each trigger anew.
"""

from collections.abc import Callable, Mapping
from statistics import fmean

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer import sampled_bytes_per_offset
from spark_kafka_source.spark.offsets import Offsets
from spark_kafka_source.spark.planning import share_out
from spark_kafka_source.topic_partition import TopicPartition

Sizes = Mapping[TopicPartition, float]
"""Bytes that an offset takes in each partition's log."""


class ByteLimit:
    """Shares `max_bytes` of log out over the partitions, in proportion to what waits in each."""

    def __init__(
        self,
        client: KafkaClient,
        max_bytes: int,
        *,
        sample: Callable[[KafkaClient, Offsets], Sizes] = sampled_bytes_per_offset,
    ) -> None:
        self._client = client
        self._max_bytes = max_bytes
        self._sample = sample
        self._learnt: dict[TopicPartition, float] = {}

    def ends(self, starts: Offsets, latest: Offsets) -> Offsets:
        """How far to read, at least one offset where anything waits.

        About `max_bytes`: between the two places where it is looked at, a log is taken to change
        evenly.
        """
        first = self._sizes({each: starts[each] for each in latest if starts[each] < latest[each]})
        ends = self._share_out(starts, latest, first)
        last = self._sizes({each: ends[each] - 1 for each in first})
        mean = {each: (first[each] + last[each]) / 2 for each in first}
        nearer = self._share_out(starts, latest, mean)
        return {each: min(end, nearer[each]) for each, end in ends.items()}

    def _share_out(self, starts: Offsets, latest: Offsets, sizes: Sizes) -> Offsets:
        waiting_bytes = sum((latest[each] - starts[each]) * size for each, size in sizes.items())
        return share_out(starts, latest, self._max_bytes, round(waiting_bytes))

    def _sizes(self, positions: Offsets) -> Sizes:
        """Of each of these partitions; one that cannot be learnt is taken to be like the others."""
        self._learnt.update(self._sample(self._client, positions))
        for each in positions.keys() - self._learnt.keys():
            # Alone, even a batch larger than a sample is shown.
            self._learnt.update(self._sample(self._client, {each: positions[each]}))
        known = [self._learnt[each] for each in positions if each in self._learnt]
        otherwise = fmean(known) if known else 0.0
        return {each: self._learnt.get(each, otherwise) for each in positions}
