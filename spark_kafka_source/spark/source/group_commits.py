"""Commits a query's progress to its Kafka group, for lag tools, never at the query's expense."""

import logging
from collections.abc import Callable

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, error_named
from spark_kafka_source.groups import commit_offsets
from spark_kafka_source.net import Deadline, refuses_login
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.planning import moved
from spark_kafka_source.spark.source.source_offset import SourceOffset

logger = logging.getLogger(__name__)

METADATA = "spark_kafka_source"
"""Who committed, as far as a data source knows; a `LagListener` knows the query and batch too."""

# What a micro-batch may wait for its commit, and how long a coordinator that failed is left alone.
_COMMIT_TIMEOUT_MS = 5_000
_PAUSE_AFTER_FAILURE_MS = 10_000

_HOPELESS = {
    error_named(name)
    for name in (
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_GROUP_ID",
        "OFFSET_METADATA_TOO_LARGE",
        "TOPIC_AUTHORIZATION_FAILED",
    )
}


class GroupCommits:
    """Commits the ends of finished micro-batches to one group, each once.

    A failure is logged and the newest offsets are tried again with a later micro-batch; one that
    cannot heal is logged once and ends the commits of this query. Nothing is ever raised.
    """

    def __init__(
        self,
        client: KafkaClient,
        group_id: str,
        *,
        commit: Callable[..., None] = commit_offsets,
    ) -> None:
        self._client = client
        self._group_id = group_id
        self._commit = commit
        self._committed: Offsets = {}
        self._quiet_until = Deadline.after_ms(0)
        self._given_up = False

    def finished(
        self, position: SourceOffset, metadata: str = METADATA, *, is_last: bool = False
    ) -> None:
        """Says that everything before `position` was processed.

        After a failure nothing is tried for a while, except where `is_last`: no other will follow.
        """
        offsets = position.offsets
        news = moved(self._committed, offsets)
        if not news or self._given_up or not (is_last or self._quiet_until.expired):
            return
        try:
            self._commit(
                self._client,
                self._group_id,
                news,
                leader_epochs=position.leader_epochs,
                metadata=metadata,
                timeout_ms=_COMMIT_TIMEOUT_MS,
            )
        except KafkaError as error:
            self._failed(error)
        else:
            self._committed = dict(offsets)

    def forget(self) -> None:
        """Others commit to the group, too: what was committed may not be so any more."""
        self._committed = {}

    def _failed(self, error: KafkaError) -> None:
        hopeless = isinstance(error, BrokerError) and error.error in _HOPELESS
        if hopeless or refuses_login(error):
            self._given_up = True
            logger.error("Offsets are not committed to the group any more: %s", error)
        else:
            self._quiet_until = Deadline.after_ms(_PAUSE_AFTER_FAILURE_MS)
            logger.warning("Offsets were not committed, and will be tried again: %s", error)
