"""The IO of steps: send their requests to brokers, and give them the answers."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar, cast

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision_store import DecisionStore
from spark_kafka_source.exactly_once.endings import Transactions
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import (
    Answered,
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
    Steps,
)
from spark_kafka_source.net import together
from spark_kafka_source.producer import Generation, ProducerId, TransactionCoordinator

T = TypeVar("T")


class StepRunner:
    """Runs the steps of one prefix on brokers. Only one thread may use it at a time."""

    def __init__(
        self,
        client: KafkaClient,
        names: Names,
        generation: Generation,
        transaction_timeout_ms: int = 0,
    ) -> None:
        """`transaction_timeout_ms` is that of tasks. A driver begins none of their transactions."""
        self._client, self._names, self._generation = client, names, generation
        self._timeout_ms = transaction_timeout_ms
        self._decisions = DecisionStore(client, names, generation)
        self._transactions = Transactions(client, names, generation)
        self._clock = Clock()

    def run(self, steps: Steps[T]) -> T:
        """Run steps to their end in this thread. Return their result, or raise their error."""
        return self._client.run(self._run(steps))

    async def _run(self, steps: Steps[T]) -> T:
        go_on = partial(next, steps)
        while True:
            try:
                requests = go_on()
            except StopIteration as end:
                return cast(T, end.value)
            try:
                answers = await self.answers(requests)
            except KafkaError as error:
                go_on = partial(steps.throw, error)
            else:
                go_on = partial(steps.send, Answered(answers, self._clock.now_ms()))

    async def answers(self, requests: Sequence[Request]) -> Sequence[Any]:
        """Send requests at once, and return their answers. Raises the first error."""
        ends = [request for request in requests if isinstance(request, EndTxn)]
        if len(ends) == len(requests):
            transactions = [(end.transactional_id, end.producer) for end in ends]
            return await self._transactions.end(transactions, commit=ends[0].commit)
        return [each.result() for each in await together(map(self._answer, requests))]

    async def _answer(self, request: Request) -> Any:
        answer: Any = None
        match request:
            case ListTransactions(committed):
                answer = await self._transactions.listed(committed=committed)
            case DescribeTransactions(ids, begun):
                answer = await self._transactions.described(ids, dict(begun))
            case ReadOutcomes(winners):
                answer = await self._transactions.outcomes(winners)
            case FetchTopicIds(topics):
                found = await self._client.retrying(
                    "Metadata", partial(self._client.topics, topics)
                )
                answer = {topic.name: topic.topic_id for topic in found}
            case InitProducerId(transactional_id):
                answer = await self._init(transactional_id)
            case FetchDecisions():
                answer = await self._decisions.last_decisions(require_stable=False)
            case ConfirmDecisions():
                answer = await self._confirmed(request)
            case RecordDecision(control, decision, wheres):
                await self._decisions.record(control, decision, wheres)
            case EndTxn(transactional_id, producer, commit):
                pair = transactional_id, producer
                (answer,) = await self._transactions.end([pair], commit=commit)
        return answer

    async def _confirmed(self, request: ConfirmDecisions) -> Confirmed:
        sent_seconds = time.monotonic()
        confirmed = await self._decisions.confirmed(request.control, request.where)
        self._clock.learn(sent_seconds, confirmed.transaction)
        return confirmed

    async def _init(self, transactional_id: str) -> ProducerId:
        if transactional_id == self._names.control_id:
            return await self._decisions.fence()
        coordinator = TransactionCoordinator(self._client, transactional_id, self._generation)
        return await coordinator.init_producer_id(self._timeout_ms)


class Clock:
    """The time by the brokers' clocks, rather too late than too early.

    No broker tells its time. But brokers tell when a transaction began, by the clock of its
    coordinator. The transaction that confirms the last decisions begins after its first request has
    left this process. So the coordinator's clock shows at most its start, plus what has passed here
    since that request. Before that the clock of this machine counts. All brokers' clocks are taken
    for the same, as brokers take them.
    """

    def __init__(self) -> None:
        self._known: tuple[float, int] | None = None
        """A moment here, in monotonic seconds, and the time of brokers at or after it."""

    def now_ms(self) -> int:
        """Return the time in ms since 1970."""
        if self._known is None:
            return time.time_ns() // 1_000_000
        seconds, then_ms = self._known
        return then_ms + int((time.monotonic() - seconds) * 1000)

    def learn(self, sent_seconds: float, last: TransactionDescription | None) -> None:
        """Take the start of a transaction that began after this moment."""
        if last is not None and last.started_at_ms >= 0:
            self._known = sent_seconds, last.started_at_ms
