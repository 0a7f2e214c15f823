"""Commits of a query's progress to its Kafka group, for lag tools. They never fail the query."""

from collections.abc import Callable

from spark_kafka_source import groups
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, error_named
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversation, Deadline, refuses_login
from spark_kafka_source.spark.source.offset_arithmetic import moved
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.source_offset import SourceOffset

logger = logger_of(__name__)

METADATA = "spark_kafka_source"
"""The commits' metadata. A `LagListener` also knows the query and its batch, and writes them."""

# The longest wait of a micro-batch for its commit, and the pause after a failed one.
_COMMIT_TIMEOUT_MS = 5_000
_PAUSE_AFTER_FAILURE_MS = 10_000

_CANNOT_HEAL = {
    error_named(name)
    for name in (
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_GROUP_ID",
        "OFFSET_METADATA_TOO_LARGE",
        "TOPIC_AUTHORIZATION_FAILED",
    )
}


class GroupCommits:
    """Commits of finished micro-batches' ends to one group, each once.

    After a failure, which is logged, a later micro-batch tries the newest offsets. A failure that
    cannot heal is logged once and ends the commits of this query. No `KafkaError` is raised.
    """

    def __init__(
        self,
        client: KafkaClient,
        group_id: str,
        *,
        commit: Callable[..., Conversation[None]],
    ) -> None:
        self._client = client
        self._group_id = group_id
        self._commit = commit
        self._committed: Offsets = {}
        self._quiet_until = Deadline.after_ms(0)
        self._has_ended = False

    def finished(
        self, position: SourceOffset, metadata: str = METADATA, *, is_last: bool = False
    ) -> None:
        """Commit `position`: the query has processed everything before it.

        For a while after a failure, do nothing, except for a commit that `is_last`.
        """
        offsets = position.offsets
        news = moved(self._committed, offsets)
        if not news or self._has_ended or not (is_last or self._quiet_until.expired):
            return
        epochs = position.leader_epochs
        commits = {
            partition: groups.OffsetAndMetadata(offset, epochs.get(partition, -1), metadata)
            for partition, offset in news.items()
        }
        try:
            self._client.run(
                self._commit(self._client, self._group_id, commits, timeout_ms=_COMMIT_TIMEOUT_MS)
            )
        except KafkaError as error:
            self._failed(error)
        else:
            self._committed = dict(offsets)

    def forget(self) -> None:
        """Commit all offsets next time: other members may have committed other ones meanwhile."""
        self._committed = {}

    def _failed(self, error: KafkaError) -> None:
        cannot_heal = isinstance(error, BrokerError) and error.error in _CANNOT_HEAL
        if cannot_heal or refuses_login(error):
            self._has_ended = True
            logger.error("Offsets are not committed to the group any more: %s", error)
        else:
            self._quiet_until = Deadline.after_ms(_PAUSE_AFTER_FAILURE_MS)
            logger.warning("Offsets were not committed, and will be tried again: %s", error)
