"""The outcomes of decided transactions, and the ends of transactions, many at once.

A coordinator is asked whether exactly this transaction is still open. If it is not, the log has its
outcome (`witness`). Only if the log cannot tell it, since its records are gone or may not be read,
the coordinator's word about exactly this transaction counts: of the same start, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from spark_kafka_source.admin.held_up_partitions import open_writers
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
from spark_kafka_source.exactly_once.decision import Outcome, Winner
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.witness import found_in_log
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, pause, together
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
_DENIED = "TOPIC_AUTHORIZATION_FAILED"


class Found(NamedTuple):
    """The outcome of a decided transaction, and its state if it is open."""

    outcome: Outcome
    state: TransactionDescription | None = None


def outcomes_of(found: Mapping[Winner, Found]) -> dict[Winner, Outcome]:
    """Return the outcome of each decided transaction."""
    return {winner: outcome for winner, (outcome, _) in found.items()}


def is_open(winner: Winner, state: TransactionDescription | None) -> bool:
    """Whether a coordinator says that exactly this transaction is open."""
    found = state and (state.state, state.producer, state.started_at_ms)
    return found == (ONGOING, winner.producer, winner.started_at_ms)


def by_coordinator(winner: Winner, state: TransactionDescription | None) -> Outcome:
    """Return an outcome by the coordinator's word, if that is about exactly this transaction."""
    is_it = state is not None and (state.producer.producer_id, state.started_at_ms) == (
        winner.producer.producer_id,
        winner.started_at_ms,
    )
    if state is not None and is_it and state.state in COMMITTED:
        return Outcome.COMMITTED
    if state is not None and is_it and state.state in ABORTED:
        return Outcome.ABORTED
    return Outcome.UNKNOWN


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

    async def outcomes(self, winners: Sequence[Winner]) -> dict[Winner, Found]:
        """Return the outcome of each decided transaction.

        Waits for ends that are under way, for at most `default.api.timeout.ms`. Raises
        `KafkaTimeoutError`, and `BrokerError` if a right is needed to know an outcome.
        """
        deadline = Deadline.after_ms(self._client.config.default_api_timeout_ms)
        found: dict[Winner, Found] = {}
        tries = 0
        while left := [winner for winner in winners if winner not in found]:
            ids = [winner.transactional_id for winner in left]
            states = await describe_transactions(self._client, ids)
            broken = await self._ended_in_part(left, states)
            looks = (
                self._broken(each)
                if each in broken
                else self._outcome(each, states[each.transactional_id], deadline)
                for each in left
            )
            for winner, look in zip(
                left, await together(looks, at_once=_MOST_AT_ONCE), strict=True
            ):
                if (result := look.result()) is not None:
                    found[winner] = result
                elif deadline.expired:
                    found[winner] = self._without_end(winner, states[winner.transactional_id])
            if len(found) < len(winners):
                tries += 1
                await pause(min(self._client.pause_seconds(tries), deadline.remaining_seconds()))
        return found

    async def _ended_in_part(
        self,
        winners: Sequence[Winner],
        states: Mapping[str, TransactionDescription | None],
    ) -> set[Winner]:
        """Return those that coordinators say are open, and leaders do not, at least in a partition.

        `kafka-transactions.sh abort` ends a transaction in one partition, and its coordinator does
        not know. Nobody waits for a leader that is away: a commit needs the coordinator alone.
        """
        opened = {
            winner: state.topic_partitions
            for winner in winners
            if (state := states[winner.transactional_id]) is not None and is_open(winner, state)
        }
        wheres = {where for partitions in opened.values() for where in partitions}
        try:
            writers = await open_writers(self._client, sorted(wheres), timeout_ms=_SWEEP_MS)
        except KafkaError as error:
            logger.info("Leaders do not tell which transactions are open: %s", error)
            return set()
        return {
            winner
            for winner, partitions in opened.items()
            if any(
                winner.producer not in [writer.producer for writer in writers[where]]
                for where in partitions
            )
        }

    async def _broken(self, winner: Winner) -> Found | None:
        """Tell a tool's end in one partition from an end by the coordinator; None for that.

        Another process may commit it just now, or a former coordinator may have told its state.
        Markers come after the coordinator's state has changed.
        """
        if winner.place is not None:
            outcome = await found_in_log(self._client, winner, winner.place)
            if outcome is Outcome.COMMITTED:
                return Found(outcome)
        states = await describe_transactions(self._client, [winner.transactional_id])
        state = states[winner.transactional_id]
        return Found(Outcome.BROKEN, state) if is_open(winner, state) else None

    def _without_end(self, winner: Winner, state: TransactionDescription | None) -> Found:
        """Return the coordinator's word, as for a partition to which it writes no marker."""
        told = by_coordinator(winner, state)
        logger.warning(
            "%s is %s, and %s has no marker of it: readers wait there. See `spark-kafka-source "
            "transactions describe`",
            winner.transactional_id,
            told.value,
            winner.place,
        )
        if told is Outcome.UNKNOWN:
            what = f"{winner.transactional_id} is not open, and the log has no end of it"
            raise KafkaTimeoutError(f"{what} after {winner.place}")
        return Found(told)

    async def _outcome(
        self,
        winner: Winner,
        state: TransactionDescription | None,
        deadline: Deadline,
    ) -> Found | None:
        """Return a winner's outcome; None if its end is certain, but not in the log yet."""
        if is_open(winner, state):
            return Found(Outcome.OPEN, state)
        told = by_coordinator(winner, state)
        if winner.place is None:
            return Found(told)
        if deadline.expired:  # The looks for other winners have taken it all.
            return None
        timeout_ms = max(deadline.remaining_ms(), _SWEEP_MS)
        try:
            outcome = await found_in_log(self._client, winner, winner.place, timeout_ms=timeout_ms)
        except BrokerError as error:
            if error.error.name != _DENIED or told is Outcome.UNKNOWN:
                raise
            outcome = told
        if outcome is Outcome.OPEN:
            return None
        # A transaction may have rows in other topics than that which is gone, too.
        is_gone = outcome is Outcome.TOPIC_GONE and told is not Outcome.COMMITTED
        return Found(told if is_gone or outcome is Outcome.UNKNOWN else outcome)

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
