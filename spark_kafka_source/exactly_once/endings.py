"""The states of tasks' transactions, and their ends, many at once.

The outcome of a decided transaction is read from the last transaction under its id:

- The same start: its state tells the outcome, whatever its epoch. Some brokers of the second
  generation (4.0.0, KAFKA-19367) raise the epoch twice when a transaction times out. So an epoch
  alone cannot tell an aborted transaction from a later one.
- Another start, and a later epoch: the worker that owns the id went on. It does so only after a
  commit, or so early that its transaction could not have timed out (`slots`). So the decided one is
  committed.
- No transaction, or an earlier one: brokers have forgotten the decided one. Its outcome is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto

from spark_kafka_source.admin.transactions import (
    ABORTED,
    COMMITTED,
    ONGOING,
    Begun,
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError
from spark_kafka_source.exactly_once.decision import Winner
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, together
from spark_kafka_source.producer import (
    Generation,
    ProducerFencedError,
    ProducerId,
    TransactionCoordinator,
    end_each,
)

logger = logger_of(__name__)

# Readers wait behind open transactions, but a micro-batch must not wait for silent brokers.
_SWEEP_MS = 5_000
_OLD_MS = 10_000
_MOST_AT_ONCE = 8
_ENDED = {"INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}
"""Errors, besides fencing, of a coordinator that does not have the transaction open."""


class Outcome(Enum):
    """The outcome of a decided transaction."""

    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()
    """The brokers have forgotten it."""


def outcome(winner: Winner, last: TransactionDescription | None) -> Outcome:
    """Return the outcome of a winner, from the last transaction under its id."""
    if last is None:
        return Outcome.UNKNOWN
    if last.started_at_ms != winner.started_at_ms:
        return Outcome.COMMITTED if _is_later(last, winner) else Outcome.UNKNOWN
    if last.state in COMMITTED:
        return Outcome.COMMITTED
    if last.state in ABORTED:
        return Outcome.ABORTED
    return Outcome.OPEN if last.producer == winner.producer else Outcome.UNKNOWN


def _is_later(last: TransactionDescription, winner: Winner) -> bool:
    if last.producer.producer_id != winner.producer.producer_id:  # Its epochs have come to an end.
        return True
    return last.producer.epoch > winner.producer.epoch


def begun(winner: Winner) -> tuple[str, Begun]:
    """Return the id of a decided transaction, and the facts of its beginning."""
    return winner.transactional_id, Begun(winner.producer, winner.started_at_ms)


def is_over(error: KafkaError) -> bool:
    """Whether an error of EndTxn says that the transaction no longer exists."""
    if isinstance(error, ProducerFencedError):
        return True
    return isinstance(error, BrokerError) and error.error.name in _ENDED


class Transactions:
    """The transactions of one prefix. Only one thread may use it at a time.

    All methods are conversations.
    """

    def __init__(
        self, client: KafkaClient, names: Names, generation: Generation = Generation.FIRST
    ) -> None:
        self._client, self._names, self.generation = client, names, generation

    async def described(
        self, transactional_ids: Iterable[str], begun: Mapping[str, Begun]
    ) -> dict[str, TransactionDescription | None]:
        """Return the last transaction of each id. Under some of them one has begun for certain.

        After 10 s an earlier state is believed: the brokers may have lost the later one.
        """
        wanted = list(transactional_ids)
        if not begun:
            return await describe_transactions(self._client, wanted)
        try:
            return await describe_transactions(
                self._client, wanted, begun=begun, timeout_ms=_OLD_MS
            )
        except KafkaTimeoutError:
            return await describe_transactions(self._client, wanted)

    async def outcomes(self, winners: Sequence[Winner]) -> dict[Winner, Outcome]:
        """Return the outcome of each decided transaction."""
        known = dict(map(begun, winners))
        states = await self.described(known, known)
        return {winner: outcome(winner, states[winner.transactional_id]) for winner in winners}

    async def listed(self, *, committed: bool) -> frozenset[str]:
        """Return the ids of tasks' transactions that are open, or are committed.

        Waits at most 5 s. After that it returns none: the timeouts of open ones abort them.
        """
        states = COMMITTED if committed else [ONGOING]
        try:
            listings, _ = await list_transactions(self._client, states, timeout_ms=_SWEEP_MS)
        except KafkaError as error:
            logger.warning("Transactions of %r cannot be listed: %s", self._names.prefix, error)
            return frozenset()
        ids = (listing.transactional_id for listing in listings)
        return frozenset(filter(self._names.is_task_id, ids))

    async def end(
        self, transactions: Sequence[tuple[str, ProducerId]], *, commit: bool
    ) -> list[ProducerId | KafkaError]:
        """End these transactions, several at once. Return for each the next producer, or its error.

        All commits together take at most `default.api.timeout.ms`. All aborts take at most 5 s:
        one that cannot be aborted ends by its timeout.
        """
        timeout_ms = self._client.config.default_api_timeout_ms
        timeout_ms = timeout_ms if commit else min(timeout_ms, _SWEEP_MS)
        deadline = Deadline.after_ms(timeout_ms)
        results = await end_each(
            self._client, transactions, commit=commit, generation=self.generation
        )

        async def end(transactional_id: str, producer: ProducerId) -> ProducerId:
            if deadline.expired:
                what = f"the end of {transactional_id}"
                raise KafkaTimeoutError(f"{what}: other transactions took all of {timeout_ms} ms")
            coordinator = TransactionCoordinator(self._client, transactional_id, self.generation)
            return await coordinator.end(
                producer, commit=commit, timeout_ms=deadline.remaining_ms()
            )

        again = [
            place
            for place, answer in enumerate(results)
            if isinstance(answer, KafkaError) and answer.has_remedy
        ]
        ends = (end(*transactions[place]) for place in again)
        for place, tried in zip(again, await together(ends, at_once=_MOST_AT_ONCE), strict=True):
            results[place] = tried.error() or tried.result()
        return results
