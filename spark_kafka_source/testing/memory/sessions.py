"""Fetch sessions of a broker (KIP-227): each session's partitions and their last answers."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)

_NO_SESSION, _FULL, _LAST_EPOCH = 0, 0, 2**31 - 1
# From this version on topics go by id. A session keeps names or ids from its beginning.
_BY_ID_SINCE = 13


class Place(NamedTuple):
    """A partition in a request: by the topic's name or by the topic id."""

    topic: str
    topic_id: UUID
    partition: int


@dataclass
class Cached:
    """A session's state of a partition: the last request and the last answer."""

    asked: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def is_news(self, data: PartitionData) -> bool:
        """Return whether the answer must have the partition, and remember it. Errors always do."""
        changed = (self.high_watermark, self.log_start_offset) != (
            data.high_watermark,
            data.log_start_offset,
        )
        self.high_watermark, self.log_start_offset = data.high_watermark, data.log_start_offset
        if data.error_code:
            self.high_watermark = -1
        return bool(data.records or data.error_code or changed or data.preferred_read_replica >= 0)


@dataclass
class Session:
    """The fetch session of one consumer with one broker."""

    session_id: int
    by_id: bool
    epoch: int = 1
    partitions: dict[Place, Cached] = field(default_factory=dict)
    names: dict[UUID, str | None] = field(default_factory=dict)
    """The names of topics when the session first saw their ids."""

    def update(self, request: FetchRequest) -> None:
        """Change the partitions of the session as the request asks."""
        for place, asked in places(request.topics):
            known = self.partitions.get(place)
            if known is None:
                self.partitions[place] = Cached(asked)
            else:
                known.asked = asked
        # Kafka adds first and forgets then: a partition in both lists is forgotten.
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                gone = Place(forgotten.topic, forgotten.topic_id, partition)
                assert self.partitions.pop(gone, None), f"{gone} is forgotten, but was not known"
        self.epoch = self.epoch % _LAST_EPOCH + 1

    def said(self, found: dict[Place, PartitionData], *, all_of_it: bool) -> None:
        """Drop unchanged partitions from an answer. Partitions with records come last next time."""
        for place, data in list(found.items()):
            if not self.partitions[place].is_news(data) and not all_of_it:
                del found[place]
            elif data.records:
                self.partitions[place] = self.partitions.pop(place)


def _refusal(session: Session | None, request: FetchRequest, version: int) -> str:
    if session is None:
        return "FETCH_SESSION_ID_NOT_FOUND"
    if session.epoch != request.session_epoch:
        return "INVALID_FETCH_SESSION_EPOCH"
    other_way = session.by_id != (version >= _BY_ID_SINCE)
    return "FETCH_SESSION_TOPIC_ID_ERROR" if other_way else ""


@dataclass
class FetchSessions:
    """The fetch sessions of one node. The oldest goes when there are too many."""

    most: int = 1_000
    by_id: dict[int, Session] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(7))

    def context(self, request: FetchRequest, version: int) -> "Context":
        """Return what a request fetches, with or without a session. This advances the epoch."""
        if request.session_epoch <= _FULL:
            self.by_id.pop(request.session_id, None)
            asked = dict(places(request.topics))
            if request.session_epoch < _FULL or not self.most:
                return Context(asked)
            return Context(asked, self._new(asked, version), is_full=True)
        session = self.by_id.get(request.session_id)
        error = _refusal(session, request, version)
        if error or session is None:
            return Context(error=error)
        session.update(request)
        if not session.partitions:
            del self.by_id[session.session_id]
            return Context({})
        return Context({where: each.asked for where, each in session.partitions.items()}, session)

    def _new(self, asked: dict[Place, FetchPartition], version: int) -> Session:
        while len(self.by_id) >= self.most:
            del self.by_id[min(self.by_id)]
        session = Session(next(self._numbers), version >= _BY_ID_SINCE)
        session.partitions = {place: Cached(each) for place, each in asked.items()}
        self.by_id[session.session_id] = session
        return session


@dataclass
class Context:
    """The partitions to fetch, in order, and their session; or an error."""

    asked: dict[Place, FetchPartition] = field(default_factory=dict)
    session: Session | None = None
    is_full: bool = False
    error: str = ""

    @property
    def error_code(self) -> int:
        """The code of the error of the session, or 0."""
        return error_named(self.error).code if self.error else 0

    @property
    def session_id(self) -> int:
        """The id of the session, or 0 without one."""
        return self.session.session_id if self.session else _NO_SESSION

    @property
    def names(self) -> dict[UUID, str | None]:
        """The names of topics when the session first saw their ids."""
        return self.session.names if self.session else {}

    def said(self, found: dict[Place, PartitionData]) -> None:
        """Leave out of the answer what did not change since the last one."""
        if self.session is not None:
            self.session.said(found, all_of_it=self.is_full)


def places(topics: list[FetchTopic]) -> Iterator[tuple[Place, FetchPartition]]:
    """Yield all partitions of a request."""
    for topic in topics:
        for each in topic.partitions:
            yield Place(topic.topic, topic.topic_id, each.partition), each
