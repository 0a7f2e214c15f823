"""Transactions from outside (KIP-664): lists, descriptions, and aborts."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from spark_kafka_source.admin.errors import TransactionNotFoundError
from spark_kafka_source.admin.questions import ask_all_brokers
from spark_kafka_source.client import (
    COORDINATOR,
    Broker,
    CoordinatorKey,
    KafkaClient,
    Told,
    ask_each,
)
from spark_kafka_source.errors import KafkaError, error_named
from spark_kafka_source.producer import Generation, ProducerId, TransactionCoordinator
from spark_kafka_source.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.topic_partition import TopicPartition

ONGOING = "Ongoing"
COMMITTED = frozenset({"PrepareCommit", "CompleteCommit"})
"""The states of a transaction whose commit can no longer be undone."""
ABORTED = frozenset({"PrepareAbort", "CompleteAbort"})
"""The states of a transaction whose abort can no longer be undone."""
OPEN = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""The states of a transaction that readers of committed records wait for."""

_EMPTY = "Empty"
_NOT_FOUND = error_named("TRANSACTIONAL_ID_NOT_FOUND").code
_NOT_COORDINATOR = error_named("NOT_COORDINATOR").code


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """One transactional id, as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """The last transaction of one transactional id."""

    transactional_id: str
    state: str
    """State in Kafka's words: Empty, Ongoing, PrepareCommit, CompleteCommit and so on."""
    producer: ProducerId
    timeout_ms: int
    started_at_ms: int
    """By the broker's clock, in ms since 1970; -1 if no transaction was begun."""
    topic_partitions: tuple[TopicPartition, ...]
    """Partitions that it has written to. While it ends: partitions that still lack the marker."""
    coordinator_id: int

    @property
    def is_open(self) -> bool:
        """Whether readers of committed records wait for its end."""
        return self.state in OPEN

    def remaining_ms(self, now_ms: int | None = None) -> int:
        """Return the ms until its coordinator aborts it, by this machine's clock."""
        now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        return self.started_at_ms + self.timeout_ms - now_ms


class Begun(NamedTuple):
    """A transaction that has begun for certain."""

    producer: ProducerId
    started_at_ms: int | None = None
    """By its coordinator's clock, in ms since 1970; None if it is not known."""
    generation: Generation = Generation.FIRST
    """In the second one each end raises the epoch: a transaction of this epoch is not over."""


async def list_transactions(
    client: KafkaClient, states: Iterable[str] = (), *, timeout_ms: int | None = None
) -> tuple[list[TransactionListing], Mapping[Broker, KafkaError]]:
    """Return the transactional ids that all brokers know, in these states or in any.

    The second value has the brokers that did not answer within `timeout_ms` (default
    `default.api.timeout.ms`), each with the reason.
    """
    request = ListTransactionsRequest(state_filters=list(states))
    answers = await client.retrying(
        "ListTransactions",
        lambda deadline: ask_all_brokers(client, "ListTransactions", request, deadline),
        timeout_ms=timeout_ms,
    )
    found = [
        TransactionListing(
            each.transactional_id, each.producer_id, each.transaction_state, broker.node_id
        )
        for broker, answer in answers.items()
        if not isinstance(answer, KafkaError)
        for each in answer.transaction_states
    ]
    failures = {
        broker: answer for broker, answer in answers.items() if isinstance(answer, KafkaError)
    }
    return sorted(found, key=lambda each: each.transactional_id), failures


async def describe_transactions(
    client: KafkaClient,
    transactional_ids: Iterable[str],
    *,
    begun: Mapping[str, Begun] = MappingProxyType({}),
    timeout_ms: int | None = None,
) -> dict[str, TransactionDescription | None]:
    """Return the last transaction of each id, or None if the coordinator knows none.

    `begun` has transactions that were begun for certain, by their ids. An earlier state comes
    from a broker that was the coordinator before, stood still, and answers from memory. Then the
    coordinator is looked up again. Raises the first `BrokerError` that is final, such as a denial,
    and `KafkaTimeoutError`.
    """

    def answers(
        answer: DescribeTransactionsResponse, broker: Broker
    ) -> Iterator[Told[CoordinatorKey, TransactionDescription | None]]:
        for each in answer.transaction_states:
            key = CoordinatorKey.of_transaction(each.transactional_id)
            found = _description(each, broker)
            known = begun.get(each.transactional_id)
            if known is not None and _is_before(found, known, each.error_code):
                state = "nothing of it" if found is None else f"its earlier state {found.state!r}"
                yield Told(key, None, _NOT_COORDINATOR, f"the broker tells {state}")
            elif each.error_code == _NOT_FOUND:
                yield Told(key, None)
            else:
                yield Told(key, found, each.error_code)

    described: dict[CoordinatorKey, TransactionDescription | None] = await ask_each(
        client,
        "DescribeTransactions",
        COORDINATOR,
        map(CoordinatorKey.of_transaction, transactional_ids),
        request=lambda mine: DescribeTransactionsRequest([each.key for each in mine]),
        answers=answers,
        timeout_ms=timeout_ms,
    )
    return {each.key: found for each, found in described.items()}


def _description(found: TransactionState, broker: Broker) -> TransactionDescription:
    return TransactionDescription(
        found.transactional_id,
        found.transaction_state,
        ProducerId(found.producer_id, found.producer_epoch),
        found.transaction_timeout_ms,
        found.transaction_start_time_ms,
        tuple(
            TopicPartition(topic.topic, partition)
            for topic in found.topics
            for partition in topic.partitions
        ),
        broker.node_id,
    )


def _is_before(found: TransactionDescription, begun: Begun, code: int) -> bool:
    """Whether an answer is from before this transaction began."""
    if code:
        return code == _NOT_FOUND
    if found.producer.producer_id != begun.producer.producer_id:
        return False
    if found.producer.epoch != begun.producer.epoch:
        return found.producer.epoch < begun.producer.epoch
    if begun.started_at_ms not in (None, found.started_at_ms):
        return True
    if begun.generation is Generation.SECOND:  # The end of an earlier one has given this epoch.
        return found.state != ONGOING
    return found.state == _EMPTY


async def abort_transaction(
    client: KafkaClient, transactional_id: str, producer: ProducerId
) -> ProducerId:
    """Abort an id's open transaction if it is of exactly this producer. Return its next epoch.

    See `KafkaAdmin.abort_transaction`.
    """
    found = (await describe_transactions(client, [transactional_id]))[transactional_id]
    if found is None:
        raise TransactionNotFoundError(transactional_id)
    coordinator = TransactionCoordinator(client, transactional_id)
    await coordinator.end(producer, commit=False)
    # Fence the producer. It may still be there, and could write the rest as if nothing were lost.
    return await coordinator.init_producer_id(found.timeout_ms, producer)
