"""The lag of each partition at the end of each micro-batch, and the group's commit at that time.

Spark's progress has the end offsets of a query and those of its topics. The lag is the difference.
https://spark.apache.org/docs/latest/api/python/reference/pyspark.ss/api/pyspark.sql.streaming.StreamingQueryListener.html
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.groups import commit_offsets
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.group_commits import GroupCommits
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

Lag = Mapping[TopicPartition, int]
"""The number of offsets of each partition still to read; without partitions unknown to Spark."""


class LagListener(StreamingQueryListener):
    """Pass the lag of `format("pykafka")` queries to a callback, and log its sum at INFO.

    `callback(progress, lag)` is called at the end of each micro-batch, in a thread of Spark's. A
    query of several sources calls it for each of them, with its lag. An exception that the callback
    raises is logged.

    With the `options` of a query, which must have `kafka.group.id`, the listener commits the
    query's offsets to that group. It commits when a micro-batch ends, not when the next one begins;
    so it also does with `Trigger.Once` and at a stop. A commit names its query and batch. Use
    such a listener for a single query: it commits for every `pykafka` query of its session. A
    failure in the listener never fails a query. `token_provider` is as in `register`.

        spark.streams.addListener(LagListener(options={"kafka.group.id": "billing", ...}))
    """

    def __init__(
        self,
        callback: Callable[[StreamingQueryProgress, Lag], None] | None = None,
        *,
        options: Mapping[str, str] | None = None,
        token_provider: TokenProvider | None = None,
    ) -> None:
        self._callback = callback
        self._client: KafkaClient | None = None
        self._commits: GroupCommits | None = None
        if options:
            parsed = parse_source_options(options, token_provider)
            if parsed.group_id is None:
                raise ConfigurationError(
                    "kafka.group.id", "is missing", "Give the group to commit to"
                )
            self._client = KafkaClient(parsed.client)
            self._commits = GroupCommits(self._client, parsed.group_id, commit=commit_offsets)

    def close(self) -> None:
        """Close the connections, and commit no more. First remove the listener from the session."""
        if self._client:
            self._client.close()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: no offsets are known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Log, commit and pass on the lag of a micro-batch that has ended."""
        progress = event.progress
        for end, latest in _positions(progress):
            lag = _lag(end, latest)
            batch = f"query {progress.id} batch {progress.batchId}"
            logger.info("%s: lag %s", batch, sum(lag.values()) if lag else "unknown")
            if self._commits:
                self._commits.finished(end, batch)
            self._tell(progress, lag)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: no offset has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing: the last micro-batch has had its own event."""

    def _tell(self, progress: StreamingQueryProgress, lag: Lag) -> None:
        """Call the callback. Spark would log its error, but skip the query's other sources."""
        try:
            if self._callback:
                self._callback(progress, lag)
        except Exception:
            logger.exception("The callback of a LagListener failed")


def lags(progress: StreamingQueryProgress) -> Lag | None:
    """Return the lag of all of a query's sources. None if no source is of this package."""
    positions = list(_positions(progress))
    if not positions:
        return None
    return {at: lag for end, latest in positions for at, lag in _lag(end, latest).items()}


def _positions(
    progress: StreamingQueryProgress,
) -> Iterator[tuple[SourceOffset, SourceOffset | None]]:
    """Yield the end offset of each of our sources, and the latest offset of its topics."""
    for source in progress.sources:
        end, latest = _ours(source.endOffset), _ours(source.latestOffset)
        if end is not None and not end.initial:
            yield end, latest


def _ours(text: str | None) -> SourceOffset | None:
    """Return an offset of this package. Others, as Spark's own connector's, have no version."""
    try:
        offset = _parsed(text or "null")
        is_ours = isinstance(offset, dict) and isinstance(offset.get("version"), int)
        return SourceOffset.from_json(offset) if is_ours else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, LocalError):
        return None


def _parsed(text: str) -> Any:
    """Parse JSON. Before Spark 4.2, Spark Connect's clients have the `str` of a dict instead."""
    return ast.literal_eval(text) if text.startswith("{'") else json.loads(text)


def _lag(end: SourceOffset, latest: SourceOffset | None) -> Lag:
    # Before Spark 4.2, Spark reports a micro-batch's end as the latest offset. It has the log ends.
    reach = {**latest.offsets, **latest.log_ends} if latest else {}
    return {
        partition: max(reach[partition] - offset, 0)
        for partition, offset in sorted(end.offsets.items())
        if partition in reach
    }
