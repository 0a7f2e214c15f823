"""Transactions from outside (KIP-664): lists, descriptions, and aborts."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
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
from spark_kafka_source.producer import (
    Generation,
    ProducerFencedError,
    ProducerId,
    TransactionCoordinator,
)
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
    listings = [
        TransactionListing(
            state.transactional_id, state.producer_id, state.transaction_state, broker.node_id
        )
        for broker, answer in answers.items()
        if not isinstance(answer, KafkaError)
        for state in answer.transaction_states
    ]
    failures = {
        broker: answer for broker, answer in answers.items() if isinstance(answer, KafkaError)
    }
    return sorted(listings, key=lambda listing: listing.transactional_id), failures


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
        for state in answer.transaction_states:
            key = CoordinatorKey.of_transaction(state.transactional_id)
            description = _description(state, broker)
            known = begun.get(state.transactional_id)
            if known is not None and _is_before(description, known, state.error_code):
                text = f"the broker tells its earlier state {description.state!r}"
                yield Told(key, None, _NOT_COORDINATOR, text)
            elif state.error_code == _NOT_FOUND:
                yield Told(key, None)
            else:
                yield Told(key, description, state.error_code)

    described: dict[CoordinatorKey, TransactionDescription | None] = await ask_each(
        client,
        "DescribeTransactions",
        COORDINATOR,
        map(CoordinatorKey.of_transaction, transactional_ids),
        request=lambda keys: DescribeTransactionsRequest([key.key for key in keys]),
        answers=answers,
        timeout_ms=timeout_ms,
    )
    return {key.key: description for key, description in described.items()}


def _description(state: TransactionState, broker: Broker) -> TransactionDescription:
    return TransactionDescription(
        state.transactional_id,
        state.transaction_state,
        ProducerId(state.producer_id, state.producer_epoch),
        state.transaction_timeout_ms,
        state.transaction_start_time_ms,
        tuple(
            TopicPartition(topic.topic, partition)
            for topic in state.topics
            for partition in topic.partitions
        ),
        broker.node_id,
    )


def _is_before(description: TransactionDescription, begun: Begun, code: int) -> bool:
    """Whether an answer is from before this transaction began."""
    if code:
        return code == _NOT_FOUND
    if description.producer.producer_id != begun.producer.producer_id:
        return False
    if description.producer.epoch != begun.producer.epoch:
        return description.producer.epoch < begun.producer.epoch
    if begun.started_at_ms not in (None, description.started_at_ms):
        return True
    if begun.generation is Generation.SECOND:  # The end of an earlier one has given this epoch.
        return description.state != ONGOING
    return description.state == _EMPTY


async def abort_transaction(
    client: KafkaClient, transactional_id: str, producer: ProducerId
) -> None:
    """Abort an id's open transaction if it is of exactly this producer. Look at no decision.

    See `KafkaAdmin.abort_transaction`.
    """
    description = (await describe_transactions(client, [transactional_id]))[transactional_id]
    if description is None:
        raise TransactionNotFoundError(transactional_id)
    coordinator = TransactionCoordinator(client, transactional_id)
    await coordinator.end(producer, commit=False)
    # Fence the producer. It may still be there, and could write the rest as if nothing were lost.
    with suppress(ProducerFencedError):  # Another one has the id by now.
        await coordinator.init_producer_id(description.timeout_ms, producer)
