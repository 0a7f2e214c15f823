"""The states of tasks' transactions, and their ends, many at once."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto

from spark_kafka_source.admin.transactions import (
    ABORTED,
    COMMITTED,
    ONGOING,
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError
from spark_kafka_source.exactly_once.decision import Winner
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.net import Deadline, together
from spark_kafka_source.producer import (
    PreparedTransaction,
    ProducerFencedError,
    ProducerId,
    TransactionCoordinator,
    end_each,
)

logger = logging.getLogger(__name__)

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
    """The brokers have forgotten it, or know a later transaction under its id."""


def outcome(winner: Winner, found: TransactionDescription | None) -> Outcome:
    """Return the outcome of a winner, from the last transaction under its id."""
    if found is None or found.started_at_ms != winner.started_at_ms:
        return Outcome.UNKNOWN
    if found.state in COMMITTED:
        return Outcome.COMMITTED
    if found.state in ABORTED:
        return Outcome.ABORTED
    return Outcome.OPEN if found.producer == winner.producer else Outcome.UNKNOWN


def begun(transactions: Iterable[PreparedTransaction]) -> dict[str, ProducerId]:
    """Return the producers that have begun these transactions, by transactional id."""
    return {each.transactional_id: each.producer for each in transactions}


def is_over(error: KafkaError) -> bool:
    """Whether an error of EndTxn says that the transaction no longer exists."""
    if isinstance(error, ProducerFencedError):
        return True
    return isinstance(error, BrokerError) and error.error.name in _ENDED


def left_open(
    client: KafkaClient,
    names: Names,
    is_wanted: Callable[[str], bool],
    *,
    timeout_ms: int | None = None,
) -> list[PreparedTransaction]:
    """Return the open transactions under the wanted ids; none if brokers cannot be asked.

    Each of the two requests takes at most `timeout_ms`, by default `default.api.timeout.ms`.
    """
    try:
        listed, _ = client.run(list_transactions(client, [ONGOING], timeout_ms=timeout_ms))
        ids = [each.transactional_id for each in listed if is_wanted(each.transactional_id)]
        found = client.run(describe_transactions(client, ids, timeout_ms=timeout_ms))
    except KafkaError as error:
        logger.warning("Open transactions of %r cannot be listed: %s", names.prefix, error)
        return []
    return [
        PreparedTransaction(each.transactional_id, each.producer, len(each.topic_partitions))
        for each in found.values()
        if each is not None and each.state == ONGOING
    ]


class Transactions:
    """The transactions of one prefix. Only one thread may use it at a time."""

    def __init__(self, client: KafkaClient, names: Names) -> None:
        self._client = client
        self._names = names

    def described(self, by: Mapping[str, ProducerId]) -> dict[str, TransactionDescription | None]:
        """Return the last transaction of each id, under which these producers have begun one.

        After 10 s an earlier state is believed: the brokers may have lost the later one.
        """
        try:
            return self._client.run(
                describe_transactions(self._client, by, begun=by, timeout_ms=_OLD_MS)
            )
        except KafkaTimeoutError:
            return self._client.run(describe_transactions(self._client, by))

    def outcomes(self, winners: Sequence[Winner]) -> dict[Winner, Outcome]:
        """Return the outcome of each decided transaction."""
        return {each: outcome(each, found) for each, found in self._found(winners).items()}

    def by_urgency(self, winners: Sequence[Winner]) -> list[Winner]:
        """Return the decided transactions that are open, those first that time out first."""
        ends_ms = {
            each: found.started_at_ms + found.timeout_ms
            for each, found in self._found(winners).items()
            if found is not None and outcome(each, found) is Outcome.OPEN
        }
        return sorted(ends_ms, key=ends_ms.__getitem__)

    def _found(self, winners: Sequence[Winner]) -> dict[Winner, TransactionDescription | None]:
        found = self.described({each.transactional_id: each.producer for each in winners})
        return {each: found[each.transactional_id] for each in winners}

    def abandoned(
        self, but: Iterable[PreparedTransaction], run_id: str | None = None
    ) -> list[PreparedTransaction]:
        """Return the open transactions of attempts under this prefix, or of one run, except `but`.

        Waits at most 5 s for each of two requests. After that it returns none: their timeouts
        abort them.
        """
        known = {each.transactional_id for each in but}

        def is_abandoned(transactional_id: str) -> bool:
            return transactional_id not in known and self._is_wanted(transactional_id, run_id)

        return left_open(self._client, self._names, is_abandoned, timeout_ms=_SWEEP_MS)

    def has_committed(self, *, but_run: str) -> bool:
        """Whether another run than this one has committed a transaction, as far as brokers know."""
        try:
            listed, _ = self._client.run(
                list_transactions(self._client, COMMITTED, timeout_ms=_SWEEP_MS)
            )
        except KafkaError as error:
            logger.warning("Transactions of %r cannot be listed: %s", self._names.prefix, error)
            return False
        return any(
            self._names.is_task_id(each.transactional_id)
            and not self._names.is_of_run(each.transactional_id, but_run)
            for each in listed
        )

    def _is_wanted(self, transactional_id: str, run_id: str | None) -> bool:
        if run_id is None:
            return self._names.is_task_id(transactional_id)
        return self._names.is_of_run(transactional_id, run_id)

    def abort(self, transactions: Iterable[PreparedTransaction]) -> None:
        """Abort open transactions. One that cannot be aborted within 5 s ends by its timeout."""
        asked = list(transactions)
        ended = self.end(asked, commit=False, timeout_ms=_SWEEP_MS)
        for each, error in zip(asked, ended, strict=True):
            if error is not None:
                logger.info("%s is not aborted: %s", each.transactional_id, error)

    def end(
        self,
        transactions: Sequence[PreparedTransaction],
        *,
        commit: bool,
        timeout_ms: int | None = None,
        reached: Callable[[], object] = lambda: None,
    ) -> list[KafkaError | None]:
        """End these transactions, several at once. Return the error of each, or None.

        All ends together take at most `timeout_ms`, by default `default.api.timeout.ms`. `reached`
        is called after each end.
        """
        if timeout_ms is None:
            timeout_ms = self._client.config.default_api_timeout_ms
        deadline = Deadline.after_ms(timeout_ms)
        ends = [(each.transactional_id, each.producer) for each in transactions]
        ended = self._client.run(end_each(self._client, ends, commit=commit, reached=reached))
        errors = dict(zip(transactions, ended, strict=True))

        async def end(each: PreparedTransaction) -> None:
            if deadline.expired:
                what = f"the end of {each.transactional_id}"
                raise KafkaTimeoutError(f"{what}: other transactions took all of {timeout_ms} ms")
            coordinator = TransactionCoordinator(self._client, each.transactional_id)
            await coordinator.end(each.producer, commit=commit, timeout_ms=deadline.remaining_ms())
            reached()

        again = [each for each, error in errors.items() if error is not None and error.has_remedy]
        tried = self._client.run(together(map(end, again), at_once=_MOST_AT_ONCE))
        errors |= {each: found.error() for each, found in zip(again, tried, strict=True)}
        return [errors[each] for each in transactions]
