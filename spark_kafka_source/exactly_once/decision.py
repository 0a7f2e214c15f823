"""A driver's decision about a micro-batch: the record by which a replay recognizes the batch.

The record is the metadata of an offset that is committed to a group, of at most 4096 bytes. The
decision about many tasks has several parts, in as many groups. Any client that may commit to the
groups may have written it, so everything in it is checked.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from spark_kafka_source.exactly_once.names import Names, TaskId
from spark_kafka_source.producer import Place, ProducerId
from spark_kafka_source.topic_partition import TopicPartition

_VERSION = 2
METADATA_BYTES = 4096
"""The default of the brokers' `offset.metadata.max.bytes`."""
# The fields around the tasks take the rest.
_TASKS_CHARACTERS = 3_500
_MOST_PARTS = 1_000
_LONGEST_ID = 500
_LONGEST_TOPIC = 249
_LONGEST_LOCATION = 4096
_INT16_MAX, _INT63_MAX = (1 << 15) - 1, (1 << 63) - 1
_TASK = Struct(">IIQHQ")
"""Task, attempt, producer id, epoch and start of a winner."""
_PLACE = Struct(">HIQ")
"""The number of the topic from 1 (0 for no place), the partition and the offset."""
OF_0_2 = 0
_OLD_TASK_BYTES = 24
"""The bytes of a winner in version 1, whose start has six bytes, and which has no place."""


@dataclass(frozen=True, slots=True)
class BatchId:
    """The id of a micro-batch: its query, the query's run, and its number."""

    query_id: str
    run_id: str
    batch_id: int

    def __str__(self) -> str:
        return f"batch {self.batch_id} of query {self.query_id} (run {self.run_id})"


class Winner(NamedTuple):
    """A transaction that a decision contains, and so must be committed."""

    transactional_id: str
    producer: ProducerId
    started_at_ms: int
    """By its coordinator's clock. It tells the transaction from all others under its id."""
    place: Place | None = None
    """One of its batches in the log, by which its outcome is read. None if no leader told one, and
    in a decision of version 0.3 or older."""


class Outcome(Enum):
    """The outcome of a decided transaction. The value ends a sentence about its id."""

    OPEN = "open"
    BROKEN = "open, and ended in one of their partitions by somebody's tool"
    COMMITTED = "committed"
    ABORTED = "aborted"
    REPLACED = "replaced in the log by other records, as by an unclean leader election"
    TOPIC_GONE = "gone with their topic, which was deleted"
    UNKNOWN = "no longer in the log, so that nobody knows how they ended"


class DecisionId(NamedTuple):
    """The micro-batch of a decision, the number of the decision about it, and its write."""

    batch: BatchId
    number: int
    write: str = ""


class Seen(NamedTuple):
    """The state of a prefix, as a worker saw it before its first transaction in a run."""

    control: ProducerId | None = None
    """The control id's producer; None for a new id."""
    decisions: frozenset[DecisionId] = frozenset()
    """The decisions about the latest micro-batch."""


class Content(NamedTuple):
    """The amount of a micro-batch's rows. By it a replay is compared with the decision."""

    rows: int
    size: int
    """The bytes of all keys and values."""
    fingerprint: int | None = None
    """A number for all keys and values, whatever their order; None in versions before 0.4."""

    def __str__(self) -> str:
        checksum = "" if self.fingerprint is None else f", fingerprint {self.fingerprint:x}"
        return f"{self.rows} rows ({self.size} bytes of keys and values{checksum})"


NO_CONTENT = Content(0, 0)


@dataclass(frozen=True, slots=True)
class Decision:
    """The transactions that make up a micro-batch. They are committed, and no others are.

    `number` counts the decisions about the same micro-batch. The last decision is valid.
    """

    batch: BatchId
    winners: tuple[Winner, ...]
    number: int = 0
    content: Content = NO_CONTENT
    write: str = ""
    """The topic of the write, by which it is named; "" if a column names topics."""
    checkpoint: str | None = None
    """The checkpoint's location, as the query gave it; None if the query gave none."""

    def __str__(self) -> str:
        return f"{self.batch} to {written_to(self.write)}"

    @property
    def id(self) -> "DecisionId":
        """What tells this decision from all others under its prefix."""
        return DecisionId(self.batch, self.number, self.write)

    def parts(self) -> list[str]:
        """Return the decision as texts, each short enough for an offset's metadata."""
        space = self._space()
        tasks = base64.b64encode(self._tasks(space)).decode()
        starts = range(0, max(len(tasks), 1), _TASKS_CHARACTERS)
        shared = {
            "v": _VERSION,
            "query": self.batch.query_id,
            "run": space,
            "batch": self.batch.batch_id,
            "number": self.number,
            "parts": len(starts),
            _ROWS: self.content.rows,
            _SIZE: self.content.size,
            **({} if self.content.fingerprint is None else {_PRINT: self.content.fingerprint}),
            **({} if space == self.batch.run_id else {_OF_RUN: self.batch.run_id}),
            _WRITE: self.write,
        }
        texts = [
            json.dumps(
                shared | {"part": part, "tasks": tasks[start : start + _TASKS_CHARACTERS]},
                separators=(",", ":"),
            )
            for part, start in enumerate(starts)
        ]
        if max(map(len, texts)) > METADATA_BYTES:
            raise ValueError(f"a decision of {len(texts)} parts of {len(texts[0])} characters")
        for text in texts:
            Part.parse(text)  # A decision that cannot be read must not be made.
        return texts

    def _space(self) -> str:
        """Return the space of the winners' ids: the run, but for those of version 0.3."""
        first = TaskId.parse(self.winners[0].transactional_id) if self.winners else None
        return self.batch.run_id if first is None else first.space

    def _tasks(self, space: str) -> bytes:
        """Return the winners as bytes, after a line with what they share."""
        places = (winner.place for winner in self.winners if winner.place is not None)
        topics = sorted(set(map(_topic_of, places)))
        shared: dict[str, object] = {_TOPICS: topics}
        if self.checkpoint is not None:
            shared[_AT] = self.checkpoint
            _text(shared, _AT, _LONGEST_LOCATION)
        rows = b"".join(_row(winner, space, topics) for winner in self.winners)
        return json.dumps(shared, separators=(",", ":")).encode() + b"\n" + rows


def _topic_of(place: Place) -> tuple[str, str]:
    return place.topic_partition.topic, place.topic_id.hex


def _row(winner: Winner, space: str, topics: Sequence[tuple[str, str]]) -> bytes:
    task_id = TaskId.parse(winner.transactional_id)
    if task_id is None or task_id.space != space:
        raise ValueError(f"{winner.transactional_id!r} is no id of a task in {space!r}")
    task = _TASK.pack(task_id.task, task_id.attempt, *winner.producer, winner.started_at_ms)
    if winner.place is None:
        return task + _PLACE.pack(0, 0, 0)
    (_, partition), offset, _ = winner.place
    return task + _PLACE.pack(topics.index(_topic_of(winner.place)) + 1, partition, offset)


def written_to(write: str) -> str:
    """Return the topic or topics of a write, for an error."""
    return f"topic {write!r}" if write else "the topics of a column"


class NoDecisionError(ValueError):
    """A committed text that is not a part of a decision."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a decision, as read from an offset's metadata."""

    batch: BatchId
    number: int
    count: int
    place: int
    tasks: str
    content: Content
    write: str
    space: str
    """The space of the tasks' ids."""
    version: int
    """`OF_0_2` for a decision of version 0.2, which is told and not read."""

    @classmethod
    def parse(cls, text: str) -> "Part":
        """Parse a part. Raises `NoDecisionError` for other texts, `ValueError` if damaged."""
        fields = _json(text)
        if not isinstance(fields, dict) or not fields.keys() >= _KEYS:
            raise NoDecisionError(f"{text[:80]!r} is no decision")
        version = fields["v"]
        if type(version) is not int or not 1 <= version <= _VERSION:
            raise ValueError(f"it is of version {repr(version)[:20]}; up to {_VERSION} are known")
        if not fields.keys() >= {_ROWS, _SIZE, _WRITE}:
            version, fields = OF_0_2, {_ROWS: 0, _SIZE: 0, _WRITE: ""} | fields
        batch_id = _number(fields, "batch", _INT63_MAX)
        space = _text(fields, "run")
        run_id = _text(fields, _OF_RUN) if _OF_RUN in fields else space
        batch = BatchId(_text(fields, "query"), run_id, batch_id)
        count = _number(fields, "parts", _MOST_PARTS)
        place = _number(fields, "part", max(count - 1, 0))
        tasks = fields["tasks"]
        if count < 1 or not isinstance(tasks, str):
            raise ValueError("it has no tasks")
        number = _number(fields, "number", _INT63_MAX)
        rows, size = (_number(fields, key, _INT63_MAX) for key in (_ROWS, _SIZE))
        printed = _number(fields, _PRINT, _INT63_MAX) if _PRINT in fields else None
        content, write = Content(rows, size, printed), fields[_WRITE]
        if not isinstance(write, str) or len(write) > _LONGEST_TOPIC:
            raise ValueError(f"its {_WRITE!r} is {repr(write)[:40]}")
        return cls(batch, number, count, place, tasks, content, write, space, version)


_KEYS = {"v", "query", "run", "batch", "number", "parts", "part", "tasks"}
# Version 0.3 writes another kind of fingerprint under that name.
_ROWS, _SIZE, _PRINT = "rows", "bytes", "print"
_OF_RUN = "query_run"
"""The run, if the field "run" has another space of the ids, as in version 0.3."""
_WRITE = "write"
_TOPICS, _AT = "topics", "checkpoint"


def joined(names: Names, parts: Sequence[Part]) -> Decision:
    """Join the parts of a decision. Raises `ValueError` if they do not belong together."""
    first = parts[0]
    for place, part in enumerate(parts):
        is_next = (part.place, part.count) == (place, len(parts))
        if not is_next or replace(part, place=0, tasks="") != replace(first, tasks=""):
            raise ValueError("its parts do not fit together")
    tasks = base64.b64decode("".join(part.tasks for part in parts), validate=True)
    checkpoint, winners = _read_tasks(names, first, tasks)
    if len({winner.transactional_id for winner in winners}) != len(winners):
        raise ValueError("a task is in it twice")
    return Decision(
        first.batch, tuple(winners), first.number, first.content, first.write, checkpoint
    )


def _read_tasks(names: Names, part: Part, tasks: bytes) -> tuple[str | None, list[Winner]]:
    """Return the checkpoint's location and the winners. Raises `ValueError`."""
    if part.version == 1:
        rows = _cut(tasks, _OLD_TASK_BYTES)
        return None, [_winner(names, part.space, row[:18] + b"\0\0" + row[18:]) for row in rows]
    line, _, rest = tasks.partition(b"\n")
    shared = _json(line)
    if not isinstance(shared, dict) or not isinstance(shared.get(_TOPICS), list):
        raise ValueError("it does not say the topics of its tasks")
    topics = list(map(_topic, shared[_TOPICS]))
    checkpoint = _text(shared, _AT, _LONGEST_LOCATION) if _AT in shared else None
    winners = []
    for row in _cut(rest, _TASK.size + _PLACE.size):
        winner = _winner(names, part.space, row[: _TASK.size])
        number, partition, offset = _PLACE.unpack(row[_TASK.size :])
        if number > len(topics) or partition >= 1 << 31 or offset > _INT63_MAX:
            raise ValueError(f"a task is at topic {number}, partition {partition}, {offset}")
        if number:
            topic, topic_id = topics[number - 1]
            place = Place(TopicPartition(topic, partition), offset, topic_id)
            winner = winner._replace(place=place)
        winners.append(winner)
    return checkpoint, winners


def _topic(pair: object) -> tuple[str, UUID]:
    match pair:
        case [str(name), str(topic_id)] if 1 <= len(name) <= _LONGEST_TOPIC:
            name.encode()
            return name, UUID(hex=topic_id)
    raise ValueError(f"a topic in it is {repr(pair)[:80]}")


def _json(text: str | bytes) -> object:
    """Return the parsed text; None if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _cut(tasks: bytes, size: int) -> Iterator[bytes]:
    if len(tasks) % size:
        raise ValueError(f"it has {len(tasks)} bytes of tasks")
    return (tasks[start : start + size] for start in range(0, len(tasks), size))


def _winner(names: Names, space: str, row: bytes) -> Winner:
    task, attempt, producer_id, epoch, started_at_ms = _TASK.unpack(row)
    if producer_id > _INT63_MAX or epoch > _INT16_MAX or started_at_ms > _INT63_MAX:
        raise ValueError(f"it has a producer {producer_id} with epoch {epoch}")
    transactional_id = str(names.task_id(space, task, attempt))
    return Winner(transactional_id, ProducerId(producer_id, epoch), started_at_ms)


def _number(fields: dict[str, object], key: str, most: int) -> int:
    value = fields[key]
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"its {key!r} is {repr(value)[:40]}")
    return value


def _text(fields: dict[str, object], key: str, longest: int = _LONGEST_ID) -> str:
    value = fields[key]
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise ValueError(f"its {key!r} is {repr(value)[:40]}")
    value.encode()  # Raises for a text without UTF-8, which no request can hold as a name.
    return value


class StoredDecision(NamedTuple):
    """A decision, and the partitions whose offsets hold it, each alike.

    Brokers delete offsets with their topic. A write to several topics is remembered at several.
    """

    wheres: tuple[TopicPartition, ...]
    decision: Decision


@dataclass(frozen=True, slots=True)
class LastDecisions:
    """The last decision of each write under a prefix, as the group holds them.

    Code in foreachBatch may write a micro-batch to several topics, one write after the other. A
    write is named by its topic. Each has decisions of its own, at partitions of its own in the
    group of the prefix. Before each decision all earlier ones are brought to their end. So only the
    decisions about the latest micro-batch can have open transactions.
    """

    stored: tuple[StoredDecision, ...] = ()

    def of(self, write: str) -> Decision | None:
        """Return a write's last decision."""
        return next((each for _, each in self.stored if each.write == write), None)

    def at(self, wheres: Sequence[TopicPartition]) -> Iterator[Decision]:
        """Yield the decisions that are kept at any of these partitions."""
        return (kept.decision for kept in self.stored if {*wheres} & {*kept.wheres})

    def latest(self) -> tuple[StoredDecision, ...]:
        """Return the decisions about the latest micro-batch, which alone have open transactions."""
        batch_id = max((decision.batch.batch_id for _, decision in self.stored), default=0)
        return tuple(kept for kept in self.stored if kept.decision.batch.batch_id == batch_id)

    def after(self, new: StoredDecision) -> "LastDecisions":
        """Return the last decisions after a new one, which replaces others."""
        left = []
        for wheres, decision in self.stored:
            kept = tuple(where for where in wheres if where not in new.wheres)
            if kept and decision.write != new.decision.write:
                left.append(StoredDecision(kept, decision))
        return LastDecisions(tuple(sorted([*left, new], key=lambda kept: kept.wheres)))
