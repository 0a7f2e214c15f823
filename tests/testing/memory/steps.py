"""Steps of a conversation with a broker: one line each, with short names for everything.

A partition is `a-0`. `a-0=5` or `a-0@5` adds its offset. A member has a short name. It uses the id
and the generation (or epoch) from the broker, unless a step says otherwise.
"""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.admin import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from spark_kafka_source.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from spark_kafka_source.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from spark_kafka_source.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.testing.memory.sides import Side

LATEST, EARLIEST, GREATEST = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -4, -5, -6
NOBODY = ""

_MOST_BYTES = 1 << 20


class At(NamedTuple):
    """A partition in a text, and its number."""

    topic: str
    partition: int
    number: int


def by_topic(text: str) -> list[tuple[str, list[At]]]:
    """Parse a text like `a-0=5 a-1=7 b-0`. Return partitions by topic, in the text's order."""
    found = []
    for word in text.split():
        where, _, number = word.replace("@", "=").partition("=")
        topic, _, partition = where.partition("-")
        found.append(At(topic, int(partition), int(number or 0)))
    return [(topic, list(those)) for topic, those in groupby(found, lambda each: each.topic)]


class Step(ABC):
    """One step of a conversation. A `Question` has an answer from the broker."""

    def __repr__(self) -> str:
        """Return the call as it was written, without default values."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # all subclasses are dataclasses
        given = [
            f"{each.name}={value!r}"
            for each in fields
            if (value := getattr(self, each.name)) != each.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    @abstractmethod
    def take(self, side: Side) -> Response | None: ...


class Question(Step):
    """A request on the connection of its `speaker`."""

    @property
    def speaker(self) -> str:
        return NOBODY

    @property
    def highest_version(self) -> int | None:
        """Return the highest version to use. None means the highest one of both sides."""
        return None

    @abstractmethod
    def request(self, side: Side) -> Request[Any]: ...

    def learn(self, side: Side, answer: Any) -> None:
        """Keep values that later steps need."""

    def take(self, side: Side) -> Response | None:
        return self.answered(side, side.ask(self.speaker, self.request(side), self.highest_version))

    def answered(self, side: Side, answer: Response) -> Response:
        self.learn(side, answer)
        return answer


@dataclass(frozen=True, repr=False)
class Says(Step):
    """Send a request without waiting. `Hears` takes the answer."""

    question: Question

    def take(self, side: Side) -> None:
        question = self.question
        side.send(question.speaker, question.request(side), question.highest_version)


@dataclass(frozen=True, repr=False)
class Hears(Step):
    """Take the answer to a request of `Says`."""

    question: Question

    def take(self, side: Side) -> Response:
        return self.question.answered(side, side.hear(self.question.speaker))


# -- topics ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Create(Step):
    topic: str
    partitions: int = 1

    def take(self, side: Side) -> None:
        side.create_topic(self.topic, self.partitions)


@dataclass(frozen=True, repr=False)
class Delete(Step):
    topic: str

    def take(self, side: Side) -> None:
        side.delete_topic(self.topic)


@dataclass(frozen=True, repr=False)
class Restart(Step):
    """Restart the broker: fetch sessions are gone, and known leader epochs are former ones."""

    def take(self, side: Side) -> None:
        side.restart()


@dataclass(frozen=True, repr=False)
class Append(Step):
    """Append one batch of records a second apart."""

    topic: str
    count: int
    partition: int = 0

    def take(self, side: Side) -> None:
        side.append(self.topic, self.partition, self.count)


@dataclass(frozen=True, repr=False)
class Metadata(Question):
    """A metadata request. `makes` lets the broker create missing topics."""

    topics: str
    by_id: bool = False
    makes: bool = False

    def request(self, side: Side) -> MetadataRequest:
        names = self.topics.split()
        asked = [
            MetadataRequestTopic(side.topic_id(each), None)
            if self.by_id
            else MetadataRequestTopic(name=side.name(each))
            for each in names
        ]
        return MetadataRequest(topics=asked, allow_auto_topic_creation=self.makes)


@dataclass(frozen=True, repr=False)
class CanCreate(Question):
    """Ask whether a topic could be created. `configs` is like `retention.ms=5 segment.ms=5`."""

    topic: str
    partitions: int = 1
    replication_factor: int = 1
    configs: str = ""
    whole_name: str | None = None

    def request(self, side: Side) -> CreateTopicsRequest:
        name = side.name(self.topic) if self.whole_name is None else self.whole_name
        configs = [CreatableTopicConfig(*each.split("=")) for each in self.configs.split()]
        topic = CreatableTopic(name, self.partitions, self.replication_factor, [], configs)
        return CreateTopicsRequest([topic], validate_only=True)


@dataclass(frozen=True, repr=False)
class SetConfig(Question):
    """Set a configuration of a topic."""

    topic: str
    name: str
    value: str

    def request(self, side: Side) -> IncrementalAlterConfigsRequest:
        change = AlterableConfig(self.name, 0, self.value)
        return IncrementalAlterConfigsRequest(
            [AlterConfigsResource(2, side.name(self.topic), [change])]
        )


@dataclass(frozen=True, repr=False)
class ListOffsets(Question):
    """Ask for each partition's offset at a time in ms, or at one of Kafka's negative codes."""

    partitions: str
    at: int = LATEST
    leader_epoch: int = -1
    isolation_level: int = 0

    def request(self, side: Side) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self.isolation_level,
            topics=[
                ListOffsetsTopic(
                    side.name(topic),
                    [
                        ListOffsetsPartition(at.partition, self.leader_epoch, self.at)
                        for at in those
                    ],
                )
                for topic, those in by_topic(self.partitions)
            ],
        )


@dataclass(frozen=True, repr=False)
class Trim(Question):
    """Delete each partition's records before an offset."""

    partitions: str
    before: int

    def request(self, side: Side) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            [
                DeleteRecordsTopic(
                    side.name(topic),
                    [DeleteRecordsPartition(at.partition, self.before) for at in asked],
                )
                for topic, asked in by_topic(self.partitions)
            ],
            timeout_ms=30_000,
        )


@dataclass(frozen=True, repr=False)
class EpochEnd(Question):
    """Ask for the end offset of an epoch in each partition."""

    partitions: str
    epoch: int = 0
    leader_epoch: int = -1

    def request(self, side: Side) -> OffsetForLeaderEpochRequest:
        return OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(
                    side.name(topic),
                    [
                        OffsetForLeaderPartition(at.partition, self.leader_epoch, self.epoch)
                        for at in those
                    ],
                )
                for topic, those in by_topic(self.partitions)
            ],
        )


ALONE, FIRST, NEXT, LATE, UNKNOWN, CLOSE = "alone", "first", "next", "late", "unknown", "close"
"""A fetch's place in a session: without a session, the first one, the next one, one with a former
epoch, one of an unknown session, or the last one."""


@dataclass(frozen=True, repr=False)
class Fetch(Question):
    """Fetch from these offsets, with or without a session. `by_name` uses v12 at most."""

    partitions: str = ""
    session: str = ALONE
    leader_epoch: int = -1
    forget: str = ""
    by_name: bool = False
    isolation_level: int = 0

    @property
    def highest_version(self) -> int | None:
        return 12 if self.by_name else None

    def request(self, side: Side) -> FetchRequest:
        session_id, session_epoch = {
            ALONE: (0, -1),
            FIRST: (0, 0),
            NEXT: (side.session_id, side.session_epoch),
            LATE: (side.session_id, max(1, side.session_epoch - 1)),
            UNKNOWN: (side.session_id + 1_000, 1),
            CLOSE: (side.session_id, -1),
        }[self.session]
        return FetchRequest(
            max_bytes=_MOST_BYTES,
            isolation_level=self.isolation_level,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[
                FetchTopic(
                    side.name(topic), side.topic_id(topic), [self._partition(at) for at in those]
                )
                for topic, those in by_topic(self.partitions)
            ],
            forgotten_topics_data=[
                ForgottenTopic(
                    side.name(topic), side.topic_id(topic), [at.partition for at in those]
                )
                for topic, those in by_topic(self.forget)
            ],
        )

    def _partition(self, at: At) -> FetchPartition:
        return FetchPartition(
            at.partition, self.leader_epoch, at.number, partition_max_bytes=_MOST_BYTES
        )

    def learn(self, side: Side, answer: Any) -> None:
        if self.session == FIRST:
            side.session_id, side.session_epoch = answer.session_id, 1
        elif self.session == NEXT and not answer.error_code:
            side.session_epoch += 1
