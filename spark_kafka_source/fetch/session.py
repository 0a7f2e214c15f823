"""Fetch sessions: a broker remembers the partitions, and a request has only changes (KIP-227).

https://cwiki.apache.org/confluence/display/KAFKA/KIP-227
"""

from collections.abc import Iterable, Mapping

from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import ProtocolError, error_code, error_named
from spark_kafka_source.fetch.request import PartitionFetch, by_topic, fetch_topics
from spark_kafka_source.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    ForgottenTopic,
    PartitionData,
)
from spark_kafka_source.topic_partition import TopicPartition

_NO_SESSION, _FULL, _CLOSING = 0, 0, -1
_NOT_KEPT = _CLOSING
"""A full request with this epoch begins no session."""
_LAST_EPOCH = 2**31 - 1
_SESSION_NOT_FOUND = error_named("FETCH_SESSION_ID_NOT_FOUND")


class FetchSession:
    """The partitions and positions that one broker remembers of this reader.

    Without `is_kept` the broker remembers nothing, and each request names all partitions.
    """

    def __init__(self, *, is_kept: bool = True) -> None:
        self._full_epoch = _FULL if is_kept else _NOT_KEPT
        self._id, self._epoch = _NO_SESSION, _FULL
        self._asked: Mapping[TopicPartition, PartitionFetch] = {}
        self._known: Mapping[TopicPartition, PartitionFetch] = {}
        """What was asked for last and has an answer. A Ctrl-C may keep a request from going out."""

    @property
    def is_open(self) -> bool:
        """Whether the broker keeps a session."""
        return self._id != _NO_SESSION

    def request(self, fetches: Mapping[TopicPartition, PartitionFetch]) -> FetchRequest:
        """Return a request for all partitions, or for those that changed since the last answer.

        The caller sets the fields that do not depend on the session.
        """
        known, self._asked = self._known, dict(fetches)
        if self._epoch == _FULL:
            return self._request(self._full_epoch, fetches)
        changed = {where: fetch for where, fetch in fetches.items() if known.get(where) != fetch}
        # A topic that was made anew has the same name and another id. The old one is forgotten.
        gone = {
            where: fetch
            for where, fetch in known.items()
            if where not in fetches or fetches[where].topic_id != fetch.topic_id
        }
        request = self._request(self._epoch, changed)
        request.forgotten_topics_data = [
            ForgottenTopic(name, topic_id, [partition.partition for partition in partitions])
            for name, topic_id, partitions in by_topic(gone)
        ]
        return request

    def answered(self, answer: FetchResponse) -> dict[TopicPartition, PartitionData]:
        """Return the data of the answer to the last request, by partition.

        Raises `BrokerError` for the answer's own error; the next request begins a new session then.
        Raises `ProtocolError` for a partition that was not asked for, or that comes twice, and if
        the answer to a full request leaves one out without being throttled.
        """
        if answer.error_code:
            error = error_code(answer.error_code)
            self.begin_anew(known_to_broker=error != _SESSION_NOT_FOUND)
            raise refusal(error, "Fetch")
        by_partition: dict[TopicPartition, PartitionData] = {}
        for where, data in self._partitions(answer):
            if where in by_partition:
                raise self._broken(f"Fetch of {where}: the answer has it twice")
            by_partition[where] = data
        # A broker that throttles the client may send no partitions, and then keeps no session.
        is_throttled = answer.throttle_time_ms > 0 and not answer.responses
        if self._epoch == _FULL and not is_throttled and by_partition.keys() != self._asked.keys():
            missing = next(iter(self._asked.keys() - by_partition.keys()))
            raise self._broken(f"Fetch of {missing}: the answer leaves it out")
        self._id, self._known = answer.session_id, self._asked
        self._epoch = _FULL if self._id == _NO_SESSION else self._epoch % _LAST_EPOCH + 1
        return by_partition

    def begin_anew(self, *, known_to_broker: bool = True) -> None:
        """Make the next request a full one. It replaces a session that the broker may keep."""
        self._epoch = _FULL
        if not known_to_broker:
            self._id = _NO_SESSION

    def closing(self) -> FetchRequest:
        """Return the request that ends the session."""
        self._asked = {}
        return self._request(_CLOSING, {})

    def _request(
        self, epoch: int, fetches: Mapping[TopicPartition, PartitionFetch]
    ) -> FetchRequest:
        return FetchRequest(session_id=self._id, session_epoch=epoch, topics=fetch_topics(fetches))

    def _broken(self, text: str) -> ProtocolError:
        self.begin_anew()
        return ProtocolError(text)

    def _partitions(self, answer: FetchResponse) -> Iterable[tuple[TopicPartition, PartitionData]]:
        names = {fetch.topic_id: where.topic for where, fetch in self._asked.items()}
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for partition in topic.partitions:
                where = TopicPartition(name, partition.partition_index)
                if where not in self._asked:
                    of = name or topic.topic_id
                    raise self._broken(
                        f"Fetch: the answer has partition {where.partition} of topic {of}, "
                        "which was not asked for"
                    )
                yield where, partition
