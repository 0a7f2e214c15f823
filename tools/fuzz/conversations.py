"""Well-formed but wrong answers of a broker, to client and consumer.

The in-memory broker answers a request. Then the input changes some values of the answer.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

from spark_kafka_source.client import Asked, Broker, ClientConfig, KafkaClient
from spark_kafka_source.errors import KafkaError, LocalError, RemoteError, UnsupportedVersionError
from spark_kafka_source.fetch import (
    FetchConfig,
    OffsetRange,
    RangeReader,
    epoch_end_offsets,
    latest_offsets,
)
from spark_kafka_source.groups import commit_offsets, committed_offsets
from spark_kafka_source.net import Address, Awaited, Conversation, Deadline
from spark_kafka_source.protocol import (
    Request,
    Response,
    decode,
    encode,
    versions,
    wire_fields,
)
from spark_kafka_source.protocol.declaration import Array
from spark_kafka_source.protocol.wire import BOOLEAN, STRING, Identifier, Number
from spark_kafka_source.records import Codec, IsolationLevel, Record, to_arrow
from spark_kafka_source.testing.memory import ONE_TRY
from spark_kafka_source.testing.memory.cluster import MemoryCluster, MemoryTopic
from spark_kafka_source.testing.memory.handlers import HANDLERS
from spark_kafka_source.testing.memory.log import PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tools.fuzz.mutations import edited, edits_of

WHERE = TopicPartition("t", 0)
_OTHER = TopicPartition("t", 1)
_TOPIC_ID = UUID(int=1 << 100)
_RECORDS = 9
_MOST_REQUESTS = 200
"""Limit of one conversation. A longer conversation counts as endless."""

_NUMBERS = (-1, 0, 1, 3, 6, 100, -2, 2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1, -(2**31), -(2**63))
_TEXTS = ("t", "", "other", "a\0b", "x" * 300, "é", "..", "[::1]", None)


class _Source:
    """The bytes of an input, one after the other, and then zeros."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def is_used_up(self) -> bool:
        return self._at >= len(self._data)

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def bytes(self, count: int) -> bytes:
        return bytes(self.byte() for _ in range(count))


@cache
def _logs() -> list[PartitionLog]:
    """Return the logs. They are cached, since no handler changes them."""
    log = PartitionLog(leader_id=0)
    log.append(*[Record(b"k", b"v%d" % n) for n in range(3)], codec=Codec.LZ4)
    log.append(*[Record(b"k", b"aborted")] * 2, producer_id=1, transactional=True)
    log.append_marker(1, commit=False, first_offset=3)
    log.append(*[Record(b"k", b"v")] * 3)
    return [log, PartitionLog(leader_id=0)]


class _Liar:
    """A cluster of one node. A source changes its answers."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._requests = 0
        self._cluster = MemoryCluster(ports={0: 9092})
        self._cluster.topics["t"] = MemoryTopic("t", _TOPIC_ID, _logs())

    def answer(self, request: Request[Any], max_version: int | None) -> Response:
        self._requests += 1
        assert self._requests < _MOST_REQUESTS, "a conversation without an end"
        spoken = versions(type(request)).highest
        version = spoken if max_version is None else min(spoken, max_version)
        answer = HANDLERS[type(request)](self._cluster, 0, request, version)
        assert isinstance(answer, Response), "none of these waits for others"
        kind, true = type(answer), encode(answer, version)
        # Half of the answers are true.
        if not self._source.is_used_up and self._source.byte() & 1:
            for _ in range(1 + self._source.byte() % 3):
                _change(answer, self._source)
        try:
            return decode(kind, version, encode(answer, version))
        except LocalError:  # The changed answer cannot be encoded.
            return decode(kind, version, true)


def _change(struct: Any, source: _Source) -> None:
    """Change one value of a struct, or of a nested struct."""
    fields = wire_fields(type(struct))
    chosen = fields[source.byte() % len(fields)]
    value = getattr(struct, chosen.name)
    if isinstance(chosen.kind, Array) and value:
        what = source.byte()
        if what < 200:
            place = source.byte() % len(value)
            if dataclasses.is_dataclass(value[place]):
                _change(value[place], source)
            else:
                value[place] = _value(chosen.kind.element, value[place], source)
        elif what < 220:
            del value[source.byte() % len(value)]
        elif what < 240:
            value.append(value[source.byte() % len(value)])
        else:
            value.clear()
    elif isinstance(chosen.kind, type) and dataclasses.is_dataclass(value):
        _change(value, source)
    elif not isinstance(chosen.kind, Array | type):
        setattr(struct, chosen.name, _value(chosen.kind, value, source))


def _value(kind: Any, value: Any, source: _Source) -> Any:
    if kind is BOOLEAN:
        return not value
    if isinstance(kind, Number):
        bits = 8 * kind.layout.size
        number = _NUMBERS[source.byte() % len(_NUMBERS)]
        if source.byte() & 1:
            number = int.from_bytes(source.bytes(kind.layout.size), signed=True)
        elif not -(1 << bits - 1) <= number < 1 << bits - 1:
            number = -(1 << bits - 1) if number < 0 else (1 << bits - 1) - 1
        return number
    if isinstance(kind, Identifier):
        return UUID(bytes=source.bytes(16))
    if kind.default == STRING.default:
        return _TEXTS[source.byte() % len(_TEXTS)]
    return edited(bytes(value or b""), edits_of(source.bytes(8)))


class _Answered(Asked[Any]):
    """A future with a ready answer."""

    def __init__(self, response: Response, address: Address, deadline: Deadline) -> None:
        self.address, self.deadline = address, deadline
        self._dial = self._connection = self._error = None
        self._is_answered = True
        self._awaited = Awaited(None)
        self._awaited.response = response


class _Client(KafkaClient):
    """Client that asks the liar directly, without a connection."""

    def __init__(self, liar: _Liar) -> None:
        super().__init__(ClientConfig((Address("broker", 9092),), **ONE_TRY))
        self._liar = liar

    def ask(
        self,
        request: Request[Any],
        broker: Broker,
        deadline: Deadline,
        *,
        max_version: int | None = None,
        is_held: bool = False,
        most_in_flight: int = 1,
    ) -> Asked[Any]:
        return self._ask(request, broker.address, deadline, max_version)

    def _ask(
        self,
        request: Request[Any],
        address: Address,
        deadline: Deadline,
        max_version: int | None = None,
        most_in_flight: int = 1,
    ) -> Asked[Any]:
        return _Answered(self._liar.answer(request, max_version), address, deadline)


def _range(isolation_level: IsolationLevel) -> Callable[[KafkaClient], None]:
    def read(client: KafkaClient) -> None:
        wanted = OffsetRange(WHERE, 0, _RECORDS, _TOPIC_ID, 0)
        config = FetchConfig(isolation_level=isolation_level)
        offsets: list[int] = []
        for chunk in RangeReader(client, [wanted], config, poll_timeout_ms=0).chunks():
            offsets += to_arrow(chunk, include_headers=True)["offset"].to_pylist()
        assert offsets == sorted(set(offsets))
        assert all(0 <= offset < _RECORDS for offset in offsets)

    return read


def _running(
    question: Callable[[KafkaClient], Conversation[object]],
) -> Callable[[KafkaClient], object]:
    return lambda client: client.run(question(client))


_QUESTIONS: tuple[Callable[[KafkaClient], object], ...] = (
    _range(IsolationLevel.READ_UNCOMMITTED),
    _range(IsolationLevel.READ_COMMITTED),
    _running(lambda client: latest_offsets(client, [WHERE, _OTHER])),
    _running(lambda client: epoch_end_offsets(client, {WHERE: 0})),
    _running(lambda client: committed_offsets(client, "g", [WHERE, _OTHER])),
    _running(lambda client: commit_offsets(client, "g", {WHERE: 3})),
    _running(
        lambda client: client.retrying("Metadata", lambda deadline: client.topics(None, deadline))
    ),
)


def conversations(data: bytes) -> None:
    """A byte selects the call. Then bytes say for each answer if it is true, or what changes."""
    source = _Source(data[1:])
    wanted = _QUESTIONS[data[0] % len(_QUESTIONS)] if data else _QUESTIONS[0]
    try:
        wanted(_Client(_Liar(source)))
    except KafkaError as error:
        # No answer of a broker may cause an internal error of this package.
        assert isinstance(error, RemoteError | UnsupportedVersionError)
        assert str(error)
