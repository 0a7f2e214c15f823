"""Reaction of a consumer to lost records: a reset by `auto.offset.reset`, or an error."""

import logging
from collections.abc import Sequence

from spark_kafka_source.client import Topic
from spark_kafka_source.consumer.topics import MissingTopics
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import BrokerError, KafkaError
from spark_kafka_source.fetch.losses import LogTruncatedError, RecordsLostError, TopicGoneError
from spark_kafka_source.fetch.offset_reset import ResetPolicy
from spark_kafka_source.fetch.positions import Position
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import BrokerHistory

logger = logger_of(__name__)


class Resetting:
    """Reset of positions by the policy. Errors that may heal are logged."""

    def __init__(self, policy: ResetPolicy, history: BrokerHistory) -> None:
        self._policy, self._history = policy, history
        self._missing = MissingTopics()
        self._told_kinds: set[type[KafkaError]] = set()

    def out_of_range(self, position: Position) -> bool:
        """Reset by the policy. Return False without one: the caller finds out what was lost."""
        if self._policy.is_none:
            return False
        where, offset = position.topic_partition, position.fetch_offset
        logger.warning("%s: offset %d is not in the log; going on by the policy", where, offset)
        position.reset(self._policy)
        return True

    def made_anew(self, position: Position, error: TopicGoneError) -> None:
        """Go on in the new topic by the policy."""
        if self._policy.is_none:
            raise error
        logger.warning("%s; another has its name, going on there by the policy", error)
        position.topic_id, position.checked_epoch = None, -1
        position.reset(self._policy)

    def lost(self, position: Position, error: RecordsLostError) -> None:
        """Go on where the log was truncated."""
        if self._policy.is_none or not isinstance(error, LogTruncatedError):
            raise error
        logger.warning("%s; going on there", error)
        position.seek(error.diverged)

    def failed(self, error: KafkaError, _: Position | None = None) -> None:
        """Warn once of each kind until brokers answer again: retries come many times a minute.

        As long as no broker ever answered, `UnreachableWarning` warns.
        """
        if not self._history.was_reached:
            self._history.last_error = error
            return
        is_new = not isinstance(error, BrokerError) and type(error) not in self._told_kinds
        logger.log(logging.WARNING if is_new else logging.DEBUG, "%s; trying again", error)
        self._told_kinds.add(type(error))

    def described(self, topics: Sequence[Topic]) -> None:
        """Warn once of a missing topic until it is there, because lookups of it repeat."""
        self._told_kinds.clear()
        for topic in self._missing.newly(topics):
            if topic.error.retriable:
                error = refusal(topic.error, f"Metadata of {topic.name}", topic=topic.name)
                logger.warning("%s; trying again", error)
