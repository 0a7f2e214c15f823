"""The requests of a driver or a task to brokers, and the steps that send them. No IO.

`Steps` are a generator. It yields requests that go out at once, is sent their answers, and returns
its result. So the same steps run on brokers, and in a program that tries all interleavings. The
error of a request is raised within the steps, where they wait. Only `EndTxn` has its error as its
answer, since the other ends count, too.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from spark_kafka_source.admin.transactions import Begun, TransactionDescription
from spark_kafka_source.exactly_once.decision import Decision, LastDecisions, Winner
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.topic_partition import TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListTransactions:
    """Answer: the ids of tasks' transactions under the prefix that are open, or are committed."""

    committed: bool = False


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    """Answer: the last transaction of each id, by id; None for an id that brokers do not know."""

    transactional_ids: tuple[str, ...]
    begun: tuple[tuple[str, Begun], ...] = ()
    """Transactions that have begun for certain: an earlier state is not believed."""


@dataclass(frozen=True, slots=True)
class ReadOutcomes:
    """Answer: what became of each decided transaction, a `Found` for each."""

    winners: tuple[Winner, ...]


@dataclass(frozen=True, slots=True)
class FetchTopicIds:
    """Answer: the id of each topic, by name."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """Answer: the id and epoch to write with. An open transaction of the id is aborted."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class FetchDecisions:
    """Answer: `LastDecisions`. A decision that is about to be made is not waited for."""


@dataclass(frozen=True, slots=True)
class ConfirmDecisions:
    """Answer: `Confirmed`, as the group's present coordinator tells it.

    An offset of `where` is written and aborted, since a former coordinator cannot take it.
    """

    control: ProducerId
    where: TopicPartition


class Confirmed(NamedTuple):
    """The last decisions, which no former coordinator can tell."""

    control: ProducerId
    """The id and epoch to go on with."""
    decisions: LastDecisions
    transaction: TransactionDescription | None = None
    """The transaction of the control id that was aborted to confirm them."""


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """Write a decision in the transaction of the control id. Answer: None."""

    control: ProducerId
    decision: Decision
    wheres: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class EndTxn:
    """Commit or abort exactly this transaction.

    Answer: the id and epoch to go on with, or a `KafkaError`. In the first generation the epoch
    stays as it was.
    """

    transactional_id: str
    producer: ProducerId
    commit: bool


Request = (
    ListTransactions
    | DescribeTransactions
    | ReadOutcomes
    | FetchTopicIds
    | InitProducerId
    | FetchDecisions
    | ConfirmDecisions
    | RecordDecision
    | EndTxn
)


class Answered(NamedTuple):
    """The answers to requests that went out at once, in their order."""

    answers: Sequence[Any]
    now_ms: int
    """The time by the brokers' clocks, in ms since 1970: rather too late than too early."""


Steps = Generator[Sequence[Request], Answered, T]


def ask(request: Request) -> Steps[Any]:
    """Send one request, and return its answer."""
    return (yield (request,)).answers[0]


def described(begun: tuple[tuple[str, Begun], ...]) -> DescribeTransactions:
    """Return the request about the ids of these transactions."""
    return DescribeTransactions(tuple(transactional_id for transactional_id, _ in begun), begun)


def end_each(transactions: Iterable[tuple[str, ProducerId]], *, commit: bool) -> Steps[list[Any]]:
    """End these transactions, all at once. Return the answer of each."""
    ends = [EndTxn(*transaction, commit) for transaction in transactions]
    return list((yield ends).answers) if ends else []
