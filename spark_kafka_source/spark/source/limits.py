"""The limits of a micro-batch: at most so much, or at least so much unless it takes too long.

Spark 4.2 and newer ask the reader for its limit and give it to each `latestOffset`, except with
`Trigger.Once`. For Spark 4.0 and 4.1 the reader keeps its limit with each trigger.
"""

import time
from collections.abc import Callable, Mapping, Set
from statistics import fmean

import pyspark

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import listed
from spark_kafka_source.fetch import sampled_bytes_per_offset
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversation
from spark_kafka_source.spark.source.admission import (
    LimitsWithAvailableNow,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from spark_kafka_source.spark.source.offset_arithmetic import limit_offsets, share_out
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

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
        """Return the ends of a micro-batch of about `max_bytes`.

        Each partition with waiting records gets at least one offset.

        The size of records is assumed to change evenly between the two samples of a log. Ranges
        that are more than a quarter too large are halved until they fit, at most 12 times.
        """
        waiting = [partition for partition, end in latest.items() if starts[partition] < end]
        first = self._sizes({partition: starts[partition] for partition in waiting})
        ends = share_out(starts, latest, self._max_bytes, round(_bytes(starts, latest, first)))
        for _ in range(_MOST_HALVINGS):
            last = self._sizes({partition: ends[partition] - 1 for partition in first})
            mean = {partition: (first[partition] + last[partition]) / 2 for partition in first}
            if _bytes(starts, ends, mean) <= _TOLERANCE * self._max_bytes:
                break
            ends = {
                partition: end - (end - starts[partition]) // 2 if partition in first else end
                for partition, end in ends.items()
            }
        return ends

    def _sizes(self, positions: Offsets) -> Sizes:
        """Return the sizes from these positions on. Unknown ones are the mean of the others."""
        missing = positions.keys() - self._learn(positions)
        # A broker sends even a batch larger than a sample if it is asked for this partition alone.
        # The partitions that were sampled longest ago come first.
        oldest_first = sorted(missing, key=lambda partition: self._learnt_at.get(partition, 0))
        for partition in oldest_first[:_MOST_ALONE]:
            self._learn({partition: positions[partition]})
        known = [self._learnt[partition] for partition in positions if partition in self._learnt]
        otherwise = fmean(known) if known else 0.0
        return {partition: self._learnt.get(partition, otherwise) for partition in positions}

    def _learn(self, positions: Offsets) -> Set[TopicPartition]:
        sizes = self._client.run(self._sample(self._client, positions))
        self._learnt.update(sizes)
        self._samples += 1
        self._learnt_at.update(dict.fromkeys(sizes, self._samples))
        return sizes.keys()


def _bytes(starts: Offsets, ends: Offsets, sizes: Sizes) -> float:
    return sum((ends[partition] - starts[partition]) * size for partition, size in sizes.items())


def limit_of(options: SourceOptions) -> ReadLimit:
    """Return the first limit per trigger that is given: Spark takes only one."""
    if options.max_offsets_per_trigger is not None:
        return ReadMaxRows(options.max_offsets_per_trigger)
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    if options.min_offsets_per_trigger is not None:
        return ReadMinRows(options.min_offsets_per_trigger)
    return ReadAllAvailable()


def warn_of_early_end(options: SourceOptions, last: SourceOffset) -> None:
    """Warn that the last run before Spark 4.2 may have ended too early, as its end tells.

    Spark tells no reader the trigger, and a process of Spark's that ends cannot say anything.
    """
    left = sorted(last.log_ends)
    limits = (options.max_offsets_per_trigger, options.max_bytes_per_trigger)
    is_accepted = options.limits_with_available_now is LimitsWithAvailableNow.ACCEPT
    if last.first_of_run and left and any(limits) and not is_accepted:
        logger.warning(
            "The last run ended with its first micro-batch, and has not read all of %s; this one "
            "goes on. On Spark %s a run with Trigger.AvailableNow or Trigger.Once is one "
            "micro-batch, which '%s' limits. Use Trigger.ProcessingTime, or Spark 4.2 or newer. If "
            "you accept this, set 'limitsWithAvailableNow' to 'accept', and the warning is gone",
            listed(left, 5),
            pyspark.__version__,
            "maxBytesPerTrigger" if limits[0] is None else "maxOffsetsPerTrigger",
        )


class Limits:
    """The limits of one query, by its options."""

    def __init__(self, options: SourceOptions, client: KafkaClient) -> None:
        self._least = options.min_offsets_per_trigger
        self._delay_ms = options.max_trigger_delay_ms
        max_bytes = options.max_bytes_per_trigger
        self._bytes = None if max_bytes is None else ByteLimit(client, max_bytes)
        self._last_batch_seconds: float | None = None

    def batch_begins(self) -> None:
        """Note that a micro-batch is planned: the delay of the next one begins."""
        self._last_batch_seconds = time.monotonic()

    def ends(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> Offsets:
        """Return the ends of a micro-batch that goes from `begin` towards `latest`."""
        if isinstance(limit, ReadMaxRows):
            latest = limit_offsets(begin, latest, limit.max_rows)
        if self._bytes and not isinstance(limit, ReadAllAvailable):
            latest = self._bytes.ends(begin, latest)
        return latest

    def are_to_wait(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        """Whether to wait for `minOffsetsPerTrigger`, as long as `maxTriggerDelay` is not over."""
        if self._least is None or isinstance(limit, ReadAllAvailable):
            return False
        waiting = sum(end - begin[partition] for partition, end in latest.items())
        if waiting >= self._least or self._last_batch_seconds is None:
            return False
        return (time.monotonic() - self._last_batch_seconds) * 1000 < self._delay_ms
