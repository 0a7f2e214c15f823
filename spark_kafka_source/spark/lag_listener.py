"""Lag of each partition at the end of each micro-batch, and the group's commit at that moment.

Spark's progress has how far a query read and how far its topics reach: lag is the distance.
https://spark.apache.org/docs/latest/api/python/reference/pyspark.ss/api/pyspark.sql.streaming.StreamingQueryListener.html
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping

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
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.group_commits import GroupCommits
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

Lag = Mapping[TopicPartition, int]
"""How many offsets of each partition are still to be read; without those not known to Spark."""


class LagListener(StreamingQueryListener):
    """Logs the lag of `format("pykafka")` queries, and hands it to a callback.

    `callback(progress, lag)` is called at the end of each micro-batch, in a thread of Spark's; what
    it raises is logged. Before Spark 4.2, a micro-batch reads all that there is when it is planned:
    there `lag` is 0.

    With the `options` of a query, which must have `kafka.group.id`, its offsets are committed to
    that group when a micro-batch ends rather than when the next one begins, so at `Trigger.Once`
    and at a stop too; a commit says which query and batch it is of. Then give a listener to one
    query only: it commits for every `pykafka` query of its session. Nothing that fails here
    fails a query. `token_provider` is as in `register`.

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
            found = parse_source_options(options, token_provider)
            if found.group_id is None:
                raise ConfigurationError(
                    "kafka.group.id", "is missing", "Give the group to commit to"
                )
            self._client = KafkaClient(found.client)
            self._commits = GroupCommits(self._client, found.group_id)

    def close(self) -> None:
        """Closes its connections, once it is removed from the session; it commits no more."""
        if self._client:
            self._client.close()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch has ended."""
        progress = event.progress
        for end, latest in _positions(progress):
            lag = _lag(end, latest)
            batch = f"query {progress.id} batch {progress.batchId}"
            logger.info("%s: lag %s", batch, sum(lag.values()) if lag else "unknown")
            if self._commits:
                self._commits.finished(end, batch)
            self._tell(progress, lag)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The last micro-batch has been told of."""

    def _tell(self, progress: StreamingQueryProgress, lag: Lag) -> None:
        """Spark would log what a callback raises, too, but leave out the query's other sources."""
        try:
            if self._callback:
                self._callback(progress, lag)
        except Exception:
            logger.exception("The callback of a LagListener failed")


def _positions(
    progress: StreamingQueryProgress,
) -> Iterator[tuple[SourceOffset, SourceOffset | None]]:
    """How far each of our sources has read, and how far its topics reach."""
    for source in progress.sources:
        end, latest = _ours(source.endOffset), _ours(source.latestOffset)
        if end is not None and not end.initial:
            yield end, latest


def _ours(text: str | None) -> SourceOffset | None:
    """An offset of this package's; others, Spark's own connector among them, have no version."""
    try:
        found = json.loads(text or "null")
        is_ours = isinstance(found, dict) and isinstance(found.get("version"), int)
        return SourceOffset.from_json(found) if is_ours else None
    except (ValueError, RecursionError, LocalError):
        return None


def _lag(end: SourceOffset, latest: SourceOffset | None) -> Lag:
    reach = latest.offsets if latest else {}
    return {
        each: max(reach[each] - offset, 0)
        for each, offset in sorted(end.offsets.items())
        if each in reach
    }
