"""The limits of a micro-batch: at most so much, or at least so much unless it takes too long.

Spark 4.2 and newer ask the reader for its limit and give it to each `latestOffset`, except with
`Trigger.Once`. For Spark 4.0 and 4.1 the reader keeps its limit with each trigger.
"""

import logging
import time
from collections.abc import Iterator

import pyspark

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.spark.source.admission import (
    LimitsWithAvailableNow,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)
from spark_kafka_source.spark.source.byte_limit import ByteLimit
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planning import limit_offsets

logger = logging.getLogger(__name__)


def limit_of(options: SourceOptions) -> ReadLimit:
    """Return the first limit per trigger that is given: Spark takes only one."""
    if options.max_offsets_per_trigger is not None:
        return ReadMaxRows(options.max_offsets_per_trigger)
    if options.max_bytes_per_trigger is not None:
        return ReadMaxBytes(options.max_bytes_per_trigger)
    if options.min_offsets_per_trigger is not None:
        return ReadMinRows(options.min_offsets_per_trigger)
    return ReadAllAvailable()


def warn_of_available_now(options: SourceOptions) -> None:
    """Warn of the options that let a run with `Trigger.AvailableNow` end early before Spark 4.2.

    The reader cannot refuse them: Spark does not tell it the trigger.
    """
    if options.limits_with_available_now is LimitsWithAvailableNow.ACCEPT:
        return
    for name in _ending_early(options):
        logger.warning(
            "Option '%s': on Spark %s a run with Trigger.AvailableNow or Trigger.Once is one "
            "micro-batch. With this option it ends before it has read all, and the next run goes "
            "on. Use Trigger.ProcessingTime, or Spark 4.2 or newer. If you use no such trigger, or "
            "accept this, set 'limitsWithAvailableNow' to 'accept', and the warning is gone",
            name,
            pyspark.__version__,
        )


def _ending_early(options: SourceOptions) -> Iterator[str]:
    if options.max_offsets_per_trigger is not None:
        yield "maxOffsetsPerTrigger"
    if options.max_bytes_per_trigger is not None:
        yield "maxBytesPerTrigger"
    if options.managed_group is not None:
        yield "managedGroup"


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
        waiting = sum(end - begin[each] for each, end in latest.items())
        if waiting >= self._least or self._last_batch_seconds is None:
            return False
        return (time.monotonic() - self._last_batch_seconds) * 1000 < self._delay_ms
