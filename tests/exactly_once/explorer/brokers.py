"""A model of brokers: transactions of both generations, their log, and the kept decisions.

A state is a value, and a request makes a new one. What a broker does at once here takes two steps
in Kafka only while a transaction ends: then a real one asks to try again.
"""

from typing import Any, NamedTuple
from uuid import UUID
from zlib import crc32

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.errors import BrokerError, KafkaError, error_named
from spark_kafka_source.exactly_once.decision import (
    LastDecisions,
    Outcome,
    StoredDecision,
    Winner,
)
from spark_kafka_source.exactly_once.endings import Found, is_open
from spark_kafka_source.exactly_once.errors import OtherDriverError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import (
    ConfirmDecisions,
    Confirmed,
    DescribeTransactions,
    EndTxn,
    FetchDecisions,
    FetchTopicIds,
    InitProducerId,
    ListTransactions,
    ReadOutcomes,
    RecordDecision,
    Request,
)
from spark_kafka_source.producer import Place, ProducerFencedError, ProducerId
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.topic_partition import TopicPartition

NAMES = Names("p")
TIMEOUT_MS = 1_000_000
LONG_MS = 2 * TIMEOUT_MS
"""A long time. Whatever was open before it is out of time after it."""
FENCED = ProducerFencedError(error_named("PRODUCER_FENCED"), "a request")
INVALID = BrokerError(error_named("INVALID_TXN_STATE"), "a request")
UNKNOWN_ID = BrokerError(error_named("INVALID_PRODUCER_ID_MAPPING"), "a request")
REFUSED = BrokerError(error_named("INVALID_PRODUCER_EPOCH"), "Produce")
TOPIC_ID = UUID(int=1)


class Row(NamedTuple):
    """A row: rows of another kind are other rows under the number of the same micro-batch."""

    batch_id: int
    write: str
    task: int
    place: int
    """The first or the second of its task."""
    kind: int = 0


class Transaction(NamedTuple):
    """The last transaction under an id, as its coordinator knows it."""

    producer: ProducerId
    state: str = "Empty"
    started_at_ms: int = -1
    rows: tuple[Row, ...] = ()


class Ended(NamedTuple):
    """A transaction in the log, as its control record says. No later one changes it."""

    transactional_id: str
    offset: int
    """Its place. Each id has a log of its own here."""
    producer: ProducerId
    is_committed: bool


class Brokers(NamedTuple):
    """All that brokers know."""

    generation: Generation
    timeout_bumps: int = 1
    """How often the epoch is raised when a transaction times out: twice by Kafka 4.0.0."""
    now_ms: int = 0
    transactions: tuple[tuple[str, Transaction], ...] = ()
    forgotten: tuple[str, ...] = ()
    """The ids that have expired."""
    log: frozenset[Ended] = frozenset()
    recorded: StoredDecision | None = None
    """The decision in the open transaction of the control id."""
    decisions: LastDecisions = LastDecisions()
    read: frozenset[Row] = frozenset()
    """The rows that readers of committed records see."""
    decided: frozenset[tuple[str, ProducerId, int]] = frozenset()
    """All transactions that were ever decided, with their starts."""
    broken: frozenset[tuple[str, ProducerId]] = frozenset()
    """Those that are aborted in their partitions, and their coordinators do not know."""

    def find(self, transactional_id: str) -> Transaction | None:
        """Return the last transaction of an id."""
        return dict(self.transactions).get(transactional_id)

    def with_(self, transactional_id: str, found: Transaction | None) -> "Brokers":
        """Return the brokers with this transaction as the last one of the id, or without the id."""
        known = {name: each for name, each in self.transactions if name != transactional_id}
        if found is not None:
            known[transactional_id] = found
        return self._replace(transactions=tuple(sorted(known.items())))

    def is_due(self, found: Transaction) -> bool:
        """Whether a transaction is out of time."""
        return found.state == "Ongoing" and found.started_at_ms + TIMEOUT_MS < self.now_ms


class Answer(dict[Any, Any]):
    """An answer that can be a part of a state."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


class WrongError(Exception):
    """The protocol has broken what it promises."""


def ask(brokers: Brokers, request: Request) -> tuple[Brokers, Any]:
    """Return the brokers after a request, and its answer, which may be a `KafkaError`."""
    match request:
        case ListTransactions(committed):  # No decision is ever forgotten here.
            return brokers, () if committed else open_ids(brokers)
        case DescribeTransactions(ids):
            return brokers, Answer((each, _described(each, brokers.find(each))) for each in ids)
        case ReadOutcomes(winners):
            return brokers, Answer((each, outcome_of(brokers, each)) for each in winners)
        case FetchTopicIds(topics):
            return brokers, Answer.fromkeys(topics, TOPIC_ID)
        case InitProducerId(transactional_id):
            return _init(brokers, transactional_id)
        case FetchDecisions():
            return brokers, brokers.decisions
        case ConfirmDecisions(control):
            if _control(brokers) != control:
                return brokers, _OTHER
            following = control._replace(epoch=control.epoch + 1)
            after = Transaction(following, "CompleteAbort", brokers.now_ms)
            return brokers.with_(NAMES.control_id, after), Confirmed(following, brokers.decisions)
        case RecordDecision(control, decision, wheres):
            if _control(brokers) != control:
                return brokers, _OTHER
            brokers, _ = _add(brokers, NAMES.control_id, control, None)
            return brokers._replace(recorded=StoredDecision(wheres, decision)), None
        case EndTxn(transactional_id, producer, commit):
            return _end(brokers, transactional_id, producer, commit=commit)


def outcome_of(brokers: Brokers, winner: Winner) -> Found:
    """Return what a coordinator says of a transaction that is open, else what the log says."""
    state = _described(winner.transactional_id, brokers.find(winner.transactional_id))
    if is_open(winner, state):
        return Found(Outcome.BROKEN if winner[:2] in brokers.broken else Outcome.OPEN, state)
    assert winner.place is not None
    here = winner.transactional_id, winner.place.offset, winner.producer
    (is_committed,) = (each.is_committed for each in brokers.log if each[:3] == here)
    return Found(Outcome.COMMITTED if is_committed else Outcome.ABORTED)


def produce(
    brokers: Brokers, transactional_id: str, producer: ProducerId, row: Row
) -> tuple[Brokers, Place | KafkaError]:
    """Write a row in a transaction. The first row begins it. Return its place."""
    brokers, error = _add(brokers, transactional_id, producer, row)
    offset = _count(brokers, transactional_id)
    return brokers, error or Place(TopicPartition(row.write, row.task), offset)


# -- what happens to brokers without a request of the protocol -------------------------------------


def open_ids(brokers: Brokers) -> tuple[str, ...]:
    """Return the ids of tasks that have an open transaction."""
    return tuple(
        each
        for each, found in brokers.transactions
        if found.state == "Ongoing" and NAMES.is_task_id(each)
    )


def time_out(brokers: Brokers, transactional_id: str) -> Brokers:
    """Abort a transaction that is out of time."""
    return _ended(brokers, transactional_id, brokers.timeout_bumps, commit=False)


def take(brokers: Brokers, transactional_id: str, *, commits: bool | None = None) -> Brokers:
    """Let another producer take an id, and perhaps end a transaction of its own."""
    brokers, producer = _init(brokers, transactional_id)
    if commits is None:
        return brokers
    brokers, _ = _add(brokers, transactional_id, producer, None)
    return _end(brokers, transactional_id, producer, commit=commits)[0]


def abort(brokers: Brokers, transactional_id: str) -> Brokers:
    """Let somebody abort an open transaction with its own epoch."""
    found = brokers.find(transactional_id)
    assert found is not None
    return _end(brokers, transactional_id, found.producer, commit=False)[0]


def break_(brokers: Brokers, transactional_id: str) -> Brokers:
    """Let somebody abort an open transaction at the leaders of its partitions."""
    found = brokers.find(transactional_id)
    assert found is not None
    return brokers._replace(broken=brokers.broken | {(transactional_id, found.producer)})


def forget(brokers: Brokers, transactional_id: str) -> Brokers:
    """Let an id expire, which has no open transaction. The log stays."""
    forgotten = tuple(sorted((*brokers.forgotten, transactional_id)))
    return brokers.with_(transactional_id, None)._replace(forgotten=forgotten)


# -- coordinators ----------------------------------------------------------------------------------

_OTHER = OtherDriverError(NAMES.prefix, str(FENCED))


def _described(transactional_id: str, found: Transaction | None) -> TransactionDescription | None:
    if found is None:
        return None
    partitions = tuple(TopicPartition("t", place) for place in range(len(found.rows)))
    return TransactionDescription(
        transactional_id,
        found.state,
        found.producer,
        TIMEOUT_MS,
        found.started_at_ms,
        partitions if found.state == "Ongoing" else (),
        0,
    )


def _control(brokers: Brokers) -> ProducerId | None:
    found = brokers.find(NAMES.control_id)
    return None if found is None else found.producer


def _count(brokers: Brokers, transactional_id: str) -> int:
    return sum(each.transactional_id == transactional_id for each in brokers.log)


def _init(brokers: Brokers, transactional_id: str) -> tuple[Brokers, ProducerId]:
    found = brokers.find(transactional_id)
    if found is None:
        # The same id in all orders of steps, and another one for each transactional id.
        expired = brokers.forgotten.count(transactional_id)
        producer = ProducerId(crc32(f"{transactional_id} {expired}".encode()), 0)
        return brokers.with_(transactional_id, Transaction(producer)), producer
    if found.state == "Ongoing":
        brokers = _ended(brokers, transactional_id, brokers.timeout_bumps, commit=False)
        return _init(brokers, transactional_id)
    producer = found.producer._replace(epoch=found.producer.epoch + 1)
    return brokers.with_(transactional_id, Transaction(producer)), producer


def _add(
    brokers: Brokers, transactional_id: str, producer: ProducerId, row: Row | None
) -> tuple[Brokers, KafkaError | None]:
    found = brokers.find(transactional_id)
    if found is None or found.producer != producer:
        return brokers, REFUSED
    if found.state != "Ongoing":
        start = brokers.now_ms + _count(brokers, transactional_id) + 1
        found = Transaction(producer, "Ongoing", start)
    rows = found.rows if row is None else (*found.rows, row)
    return brokers.with_(transactional_id, found._replace(rows=rows)), None


def _end(
    brokers: Brokers, transactional_id: str, producer: ProducerId, *, commit: bool
) -> tuple[Brokers, ProducerId | KafkaError]:
    found = brokers.find(transactional_id)
    if found is None or found.producer.producer_id != producer.producer_id:
        return brokers, UNKNOWN_ID
    bumps = int(brokers.generation is Generation.SECOND)
    ended = "CompleteCommit" if commit else "CompleteAbort"
    next_producer = producer._replace(epoch=producer.epoch + bumps)
    if found.producer == producer and found.state == "Ongoing":
        return _ended(brokers, transactional_id, bumps, commit=commit), next_producer
    if found.producer == next_producer and found.state in ("CompleteCommit", "CompleteAbort"):
        return brokers, next_producer if found.state == ended else INVALID
    return brokers, INVALID if found.producer == producer else FENCED


def _ended(brokers: Brokers, transactional_id: str, bumps: int, *, commit: bool) -> Brokers:
    found = brokers.find(transactional_id)
    assert found is not None
    state = "CompleteCommit" if commit else "CompleteAbort"
    producer = found.producer._replace(epoch=found.producer.epoch + bumps)
    after = brokers.with_(transactional_id, found._replace(producer=producer, state=state, rows=()))
    if transactional_id == NAMES.control_id:
        return _decided(after) if commit else after._replace(recorded=None)
    offset = _count(brokers, transactional_id)
    is_read = commit and (transactional_id, found.producer) not in brokers.broken
    ended = Ended(transactional_id, offset, found.producer, is_read)
    after = after._replace(log=after.log | {ended})
    return _read(after, transactional_id, found) if is_read and found.rows else after


def _decided(brokers: Brokers) -> Brokers:
    assert brokers.recorded is not None
    decided = {each[:3] for each in brokers.recorded.decision.winners}
    decisions = brokers.decisions.after(brokers.recorded)
    return brokers._replace(recorded=None, decisions=decisions, decided=brokers.decided | decided)


def _read(brokers: Brokers, transactional_id: str, found: Transaction) -> Brokers:
    if (transactional_id, found.producer, found.started_at_ms) not in brokers.decided:
        raise WrongError(f"{transactional_id} is committed, and was never decided")
    if not brokers.read.isdisjoint(found.rows):
        raise WrongError(f"a row of {found.rows} is read twice")
    read = brokers.read | {*found.rows}
    for row in found.rows:
        if any(each[:2] == row[:2] and each.kind != row.kind for each in read):
            raise WrongError(f"other rows of the micro-batch of {row} are read, too")
    return brokers._replace(read=read)
