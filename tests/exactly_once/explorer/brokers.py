"""A model of brokers: transactions of both generations, and the offset that keeps a decision.

A state is a value, and a request makes a new one. What a broker does at once here takes two steps
in Kafka only while a transaction ends: then a real one asks to try again.
"""

from typing import Any, NamedTuple
from zlib import crc32

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.errors import BrokerError, KafkaError, error_named
from spark_kafka_source.exactly_once.decision import LastDecisions, StoredDecision
from spark_kafka_source.exactly_once.errors import OtherDriverError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import (
    ConfirmDecisions,
    Confirmed,
    DescribeTransactions,
    EndTxn,
    FetchDecisions,
    InitProducerId,
    ListTransactions,
    RecordDecision,
    Request,
)
from spark_kafka_source.producer import ProducerFencedError, ProducerId
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.topic_partition import TopicPartition

NAMES = Names("p")
TIMEOUT_MS = 1_000_000
LONG_MS = 2 * TIMEOUT_MS
"""A long time. Whatever was open before it is out of time after it."""
FENCED = ProducerFencedError(error_named("PRODUCER_FENCED"), "a request")
INVALID = BrokerError(error_named("INVALID_TXN_STATE"), "a request")
REFUSED_EPOCH = BrokerError(error_named("INVALID_PRODUCER_EPOCH"), "Produce")

Row = tuple[int, str, int, int]
"""A row's micro-batch, write, task, and place: the first or the second of its task."""


class Transaction(NamedTuple):
    """The last transaction under an id."""

    producer: ProducerId
    state: str = "Empty"
    started_at_ms: int = -1
    rows: tuple[Row, ...] = ()
    begun: int = 0
    """How many transactions have begun under the id."""


class Brokers(NamedTuple):
    """All that brokers know."""

    generation: Generation
    timeout_bumps: int = 1
    """How often the epoch is raised when a transaction times out: twice by Kafka 4.0.0."""
    now_ms: int = 0
    transactions: tuple[tuple[str, Transaction], ...] = ()
    recorded: StoredDecision | None = None
    """The decision in the open transaction of the control id."""
    decisions: LastDecisions = LastDecisions()
    read: tuple[Row, ...] = ()
    """The rows that readers of committed records see."""
    decided: frozenset[tuple[str, ProducerId]] = frozenset()
    """All transactions that were ever decided."""

    def find(self, transactional_id: str) -> Transaction | None:
        """Return the last transaction of an id."""
        return dict(self.transactions).get(transactional_id)

    def with_(self, transactional_id: str, found: Transaction) -> "Brokers":
        """Return the brokers with this transaction as the last one of the id."""
        known = dict(self.transactions) | {transactional_id: found}
        return self._replace(transactions=tuple(sorted(known.items())))

    def is_due(self, found: Transaction) -> bool:
        """Whether a transaction is out of time."""
        return found.state == "Ongoing" and found.started_at_ms + TIMEOUT_MS < self.now_ms


class Described(dict[str, TransactionDescription | None]):
    """An answer that can be a part of a state."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


class WrongError(Exception):
    """The protocol has broken what it promises."""


def ask(brokers: Brokers, request: Request) -> tuple[Brokers, Any]:
    """Return the brokers after a request, and its answer, which may be a `KafkaError`."""
    match request:
        case ListTransactions(committed):
            state = "CompleteCommit" if committed else "Ongoing"
            return brokers, tuple(
                each
                for each, found in brokers.transactions
                if found.state == state and NAMES.is_task_id(each)
            )
        case DescribeTransactions(ids):
            found = [(each, _described(each, brokers.find(each))) for each in ids]
            return brokers, Described(found)
        case InitProducerId(transactional_id):
            return _init(brokers, transactional_id)
        case FetchDecisions():
            return brokers, brokers.decisions
        case ConfirmDecisions(control):
            if _control(brokers) != control:
                return brokers, _other()
            following = control._replace(epoch=control.epoch + 1)
            after = Transaction(following, "CompleteAbort", brokers.now_ms)
            return brokers.with_(NAMES.control_id, after), Confirmed(following, brokers.decisions)
        case RecordDecision(control, decision, where):
            if _control(brokers) != control:
                return brokers, _other()
            brokers, _ = _add(brokers, NAMES.control_id, control, None)
            return brokers._replace(recorded=StoredDecision(where, decision)), None
        case EndTxn(transactional_id, producer, commit):
            return _end(brokers, transactional_id, producer, commit=commit)


def produce(
    brokers: Brokers, transactional_id: str, producer: ProducerId, row: Row
) -> tuple[Brokers, KafkaError | None]:
    """Write a row in a transaction. The first row begins it."""
    return _add(brokers, transactional_id, producer, row)


def time_out(brokers: Brokers, transactional_id: str) -> Brokers:
    """Abort a transaction that is out of time."""
    found = brokers.find(transactional_id)
    assert found is not None
    return _ended(brokers, transactional_id, found, brokers.timeout_bumps, commit=False)


def state_of(brokers: Brokers, transactional_id: str) -> str:
    """Return the state of an id's last transaction, in Kafka's words."""
    found = brokers.find(transactional_id)
    return "" if found is None else found.state


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


def _other() -> OtherDriverError:
    return _OTHER


_OTHER = OtherDriverError(NAMES.prefix, str(FENCED))


def _init(brokers: Brokers, transactional_id: str) -> tuple[Brokers, ProducerId]:
    found = brokers.find(transactional_id)
    if found is None:
        # The same id in all orders of steps, and another one for each transactional id.
        producer = ProducerId(crc32(transactional_id.encode()), 0)
        return brokers.with_(transactional_id, Transaction(producer)), producer
    if found.state == "Ongoing":
        brokers = _ended(brokers, transactional_id, found, brokers.timeout_bumps, commit=False)
        return _init(brokers, transactional_id)
    producer = found.producer._replace(epoch=found.producer.epoch + 1)
    after = Transaction(producer, begun=found.begun)
    return brokers.with_(transactional_id, after), producer


def _add(
    brokers: Brokers, transactional_id: str, producer: ProducerId, row: Row | None
) -> tuple[Brokers, KafkaError | None]:
    found = brokers.find(transactional_id)
    if found is None or found.producer != producer:
        return brokers, REFUSED_EPOCH
    if found.state != "Ongoing":
        start = brokers.now_ms + found.begun + 1
        found = Transaction(producer, "Ongoing", start, (), found.begun + 1)
    rows = found.rows if row is None else (*found.rows, row)
    return brokers.with_(transactional_id, found._replace(rows=rows)), None


def _end(
    brokers: Brokers, transactional_id: str, producer: ProducerId, *, commit: bool
) -> tuple[Brokers, ProducerId | KafkaError]:
    found = brokers.find(transactional_id)
    if found is None:
        return brokers, INVALID
    bumps = int(brokers.generation is Generation.SECOND)
    ended = "CompleteCommit" if commit else "CompleteAbort"
    if found.producer == producer and found.state == "Ongoing":
        brokers = _ended(brokers, transactional_id, found, bumps, commit=commit)
        after = brokers.find(transactional_id)
        assert after is not None
        return brokers, after.producer
    is_last = found.producer == producer._replace(epoch=producer.epoch + bumps)
    if is_last and found.state in ("CompleteCommit", "CompleteAbort"):
        return brokers, found.producer if found.state == ended else INVALID
    return brokers, INVALID if found.producer == producer else FENCED


def _ended(
    brokers: Brokers, transactional_id: str, found: Transaction, bumps: int, *, commit: bool
) -> Brokers:
    state = "CompleteCommit" if commit else "CompleteAbort"
    producer = found.producer._replace(epoch=found.producer.epoch + bumps)
    after = found._replace(producer=producer, state=state, rows=())
    if transactional_id == NAMES.control_id:
        if commit:
            assert brokers.recorded is not None
            decided = {each[:2] for each in brokers.recorded.decision.winners}
            decisions = brokers.decisions.after(brokers.recorded)
            brokers = brokers._replace(decisions=decisions, decided=brokers.decided | decided)
        brokers = brokers._replace(recorded=None)
    elif commit:
        if (transactional_id, found.producer) not in brokers.decided:
            raise WrongError(f"{transactional_id} is committed, and was never decided")
        read = tuple(sorted((*brokers.read, *found.rows)))
        if len(set(read)) != len(read):
            raise WrongError(f"a row of {found.rows} is read twice")
        brokers = brokers._replace(read=read)
    return brokers.with_(transactional_id, after)
