"""A driver's questions to the brokers: the partitions that exist, and their offsets."""

import time
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from spark_kafka_source import groups
from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.denials import CREATE_IT, refusal
from spark_kafka_source.errors import (
    ConfigurationError,
    KafkaError,
    error_named,
    listed,
)
from spark_kafka_source.fetch import (
    NO_OFFSET,
    Watch,
    earliest_offsets,
    epoch_end_offsets,
    latest_offsets,
    list_offsets,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline
from spark_kafka_source.options.kinds import TOPIC_NAMES
from spark_kafka_source.spark.conditions import (
    does_not_match_assigned,
    start_offset_reset,
)
from spark_kafka_source.spark.source.bounds import (
    AtTimestamp,
    Committed,
    Extreme,
    Given,
    NamedBound,
)
from spark_kafka_source.spark.source.idle_pace import IdlePace
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

_ASK_AGAIN_SECONDS = 0.5
_INVALID_TOPIC = error_named("INVALID_TOPIC_EXCEPTION")
_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")


class _Everything(Container[Any]):
    """Container of every topic and partition."""

    def __contains__(self, _: object) -> bool:
        return True


def _check_topics(option: str, given: Given, read: Offsets) -> None:
    unread = sorted(given.whole_topics.keys() - {partition.topic for partition in read})
    if unread:
        found = f"names topics that the query does not read: {listed(unread)}"
        raise ConfigurationError(option, found, "Leave them out, or subscribe to them")


class OffsetPlanner:
    """Lookups of partitions and offsets for one query. It connects at the first question."""

    def __init__(self, options: SourceOptions, *, goes_on: bool = False) -> None:
        """A query that goes on has reached its brokers before. So its start may wait for them."""
        self._options = options
        self.client = KafkaClient(options.of_driver)
        self.client.history.was_reached = goes_on
        self._watch = Watch(self.client, options.fetch)
        self._lost: set[TopicPartition] = set()

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
        self._watch.close()

    def log_ends(self, read: Offsets = MappingProxyType({})) -> LogEnds:
        """Ask for the subscription's partitions and their ends.

        `read` is the query's position. While a log is gone or ends before it, ask again for a
        while: a broker may hear of a topic late, or a new leader learn the end late. Raises
        `ConfigurationError` for any other topic or partition that does not exist, except in a query
        that goes on with `failOnDataLoss=false`.
        """
        patience: Deadline | None = None
        while True:
            ends = self._log_ends_once(read)
            patience = patience or self._patience()  # An outage may come before the first answer.
            lost = {
                partition
                for partition, offset in read.items()
                if ends.offsets.get(partition, -1) < offset and self.reads(partition)
            }
            if lost <= self._lost or patience.expired:
                self._lost = lost
                return ends
            logger.warning("%s no longer reach what was read; asking again", listed(sorted(lost)))
            time.sleep(min(_ASK_AGAIN_SECONDS, patience.remaining_seconds()))

    def reads(self, where: TopicPartition) -> bool:
        """Whether the query reads this partition, if it exists."""
        return self._options.subscription.has(where)

    def _log_ends_once(self, read: Offsets) -> LogEnds:
        topics, where = self._partitions(read)
        log_ends = self.client.run(
            latest_offsets(self.client, where, self._options.fetch.isolation_level)
        )
        return LogEnds(
            offsets={partition: end.offset for partition, end in log_ends.items()},
            leader_epochs={
                partition: end.leader_epoch
                for partition, end in log_ends.items()
                if end.leader_epoch >= 0
            },
            topic_ids=_topic_ids(topics, where),
            cluster_id=self.client.cluster.cluster_id,
        )

    def _partitions(self, read: Offsets) -> tuple[list[Topic], list[TopicPartition]]:
        # A partition that was gone at one question is not in `read` at the next, and may be missing
        # then, too.
        goes_on = bool(read) and not self._options.data_loss.fails
        topics = self._topics(_Everything() if goes_on else {partition.topic for partition in read})
        return topics, self._options.subscription.select(topics, _Everything() if goes_on else read)

    @property
    def watches(self) -> bool:
        """Whether the leaders are watched: they tell by themselves that there is more."""
        return self._watch.useful

    def news(self, ends: LogEnds, pace: IdlePace) -> bool:
        """Wait for the pause of `pace`, or until there may be more than `ends`.

        Return False only if a look can be spared: no leader has more, and the partitions are the
        same.
        """
        if self._watch.news(ends.offsets, pace.pause_seconds) or not pace.may_spare_look():
            return True
        try:
            topics, where = self._partitions(ends.offsets)
        except KafkaError:
            return True  # The look will raise the error, too.
        return set(where) != ends.offsets.keys() or _topic_ids(topics, where) != ends.topic_ids

    def cluster_id(self) -> str:
        """Return the cluster's id; empty if brokers give none. Only the first call asks."""
        if not self.client.cluster.cluster_id:
            self.client.run(
                self.client.retrying("Metadata", lambda deadline: self.client.topics((), deadline))
            )
        return self.client.cluster.cluster_id

    def earliest(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that each partition still has."""
        return self.client.run(earliest_offsets(self.client, topic_partitions))

    def epoch_ends(self, leader_epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the end of each partition's log for a leader epoch; -1 if it is unknown."""
        return self.client.run(epoch_end_offsets(self.client, leader_epochs))

    def resolve(self, named: NamedBound, latest: Offsets) -> dict[TopicPartition, int]:
        """Return the offset that a bound stands for in each partition of `latest`.

        Raises `OffsetMismatchError` if the bound names other partitions, `DataLossError` for an
        offset that its log does not have (with `failOnDataLoss=false`, the nearest offset counts),
        and `ConfigurationError` if a time or group has no offset and `if_none` is None.
        """
        offsets = self._offsets_of(named, latest)
        if offsets.keys() != latest.keys():
            raise does_not_match_assigned(named.option, offsets, latest)
        if isinstance(named.bound, Committed):
            latest = self._reached(offsets, latest)
        # An explicit offset must lie between both ends of its log, so the start is needed, too.
        earliest = self.earliest(
            [partition for partition, offset in offsets.items() if offset != Extreme.LATEST.value]
        )
        return {
            where: self._within(named, where, offset, earliest.get(where, 0), latest[where])
            for where, offset in offsets.items()
        }

    def _offsets_of(self, named: NamedBound, latest: Offsets) -> Offsets:
        match named.bound:
            case Extreme() as extreme:
                return dict.fromkeys(latest, extreme.value)
            case Given() as given:
                _check_topics(named.option, given, latest)
                return given.of(latest)
            case AtTimestamp() as at:
                return self._at(at, named.option, latest)
            case Committed(if_none):
                return self._committed(if_none, named.option, latest)

    def _at(self, at: AtTimestamp, option: str, latest: Offsets) -> Offsets:
        given = at.timestamps
        timestamps = dict.fromkeys(latest, given) if isinstance(given, int) else given
        if timestamps.keys() != latest.keys():
            raise does_not_match_assigned(option, timestamps, latest, timestamps=True)
        records = self.client.run(
            list_offsets(self.client, timestamps, self._options.fetch.isolation_level)
        )
        offsets = {
            partition: record.offset
            for partition, record in records.items()
            if record.offset != NO_OFFSET
        }

        if at.if_none is None and offsets.keys() != latest.keys():
            missing = sorted(latest.keys() - offsets.keys())
            times = listed((f"{partition}: {timestamps[partition]}" for partition in missing), 5)
            raise ConfigurationError(
                option,
                f"no record at or after the time given ({times})",
                "Give an earlier time, or 'startingOffsetsByTimestampStrategy' as 'latest'",
            )
        return _filled(offsets, latest, at.if_none)

    def _committed(self, if_none: Extreme | None, option: str, latest: Offsets) -> Offsets:
        group_id = self._options.group_id or ""
        offsets = self.client.run(groups.committed_offsets(self.client, group_id, latest))

        if if_none is None and offsets.keys() != latest.keys():
            missing = listed(sorted(latest.keys() - offsets.keys()), 5)
            raise ConfigurationError(
                option,
                f"group {group_id!r} has committed no offset of {missing}",
                "Give 'startingOffsetsCommittedStrategy' as 'earliest' or 'latest'",
            )
        return _filled(offsets, latest, if_none)

    def _reached(self, committed: Offsets, latest: Offsets) -> Offsets:
        """Return the ends. An end that the group has read beyond is looked up again."""
        beyond = [where for where, offset in committed.items() if offset > latest[where]]
        again = self.client.run(
            latest_offsets(self.client, beyond, self._options.fetch.isolation_level)
        )
        return {**latest, **{where: end.offset for where, end in again.items()}}

    def _within(
        self, named: NamedBound, partition: TopicPartition, offset: int, earliest: int, latest: int
    ) -> int:
        ends = {Extreme.LATEST.value: latest, Extreme.EARLIEST.value: earliest}
        if offset in ends:
            return ends[offset]
        # A time is looked up after `latest`, so its record may be newer.
        is_found = isinstance(named.bound, AtTimestamp)
        if not is_found and not earliest <= offset <= latest:
            error = start_offset_reset(named.option, partition, offset, earliest, latest)
            self._options.data_loss.report(error)
        return min(max(offset, earliest), latest)

    def topic_names(self) -> list[str]:
        """Return the topics of the subscription that exist now."""
        return sorted(topic.name for topic in self._topics(()))

    def _topics(self, known: Container[str]) -> list[Topic]:
        subscription = self._options.subscription
        # It can take a moment until every broker has heard of a new topic.
        patience: Deadline | None = None

        async def attempt(deadline: Deadline) -> list[Topic]:
            nonlocal patience
            described = await self.client.topics(subscription.topic_names, deadline)
            patience = patience or self._patience()  # As in `log_ends`.
            topics = [topic for topic in described if subscription.wants(topic)]
            for topic in topics:
                if topic.error == _INVALID_TOPIC:
                    raise _no_topic_name(subscription.option, topic.name)
                unknown = topic.error == _UNKNOWN_TOPIC
                if unknown and topic.name in known:
                    continue  # `log_ends` waits for the topic once, not at every question.
                if unknown and patience.expired:
                    raise _unknown_topic(subscription.option, topic.name)
                if topic.error.code:
                    what = f"Metadata of topic {topic.name!r}"
                    raise refusal(topic.error, what, topic=topic.name)
            return [topic for topic in topics if not topic.error.code]

        return self.client.run(self.client.retrying("Metadata", attempt))

    def _patience(self) -> Deadline:
        return Deadline.after_ms(self._options.topic_lookup_timeout_ms)


def _topic_ids(topics: Iterable[Topic], where: Iterable[TopicPartition]) -> dict[str, UUID]:
    names = {partition.topic for partition in where}
    return {
        topic.name: topic.topic_id for topic in topics if topic.name in names and topic.topic_id.int
    }


def _filled(offsets: Offsets, latest: Offsets, if_none: Extreme | None) -> Offsets:
    """Return the found offsets, with `if_none` for partitions without one."""
    return {**(dict.fromkeys(latest, if_none.value) if if_none else {}), **offsets}


def _no_topic_name(option: str, name: str) -> ConfigurationError:
    return ConfigurationError(option, "{} cannot be a topic's name", TOPIC_NAMES, name)


def _unknown_topic(option: str, name: str) -> ConfigurationError:
    expected = f"{CREATE_IT}. Or name one that exists"
    return ConfigurationError(option, "topic {} does not exist", expected, name)
