"""How transactions of tasks stand, and their ends: many of them at once."""

import logging
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto

from spark_kafka_source.admin.transactions import (
    ABORTED,
    COMMITTED,
    ONGOING,
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.client import KafkaClient, Lookup, Lookups
from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError
from spark_kafka_source.exactly_once.decision import Winner
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.net import Deadline, Wakeup
from spark_kafka_source.producer import (
    PreparedTransaction,
    ProducerFencedError,
    TransactionCoordinator,
)

logger = logging.getLogger(__name__)

# Readers wait for what is left open, but a micro-batch must not wait for brokers that are silent.
_SWEEP_MS = 5_000
_ENDED = {"INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}
"""What a coordinator says of a transaction that it does not have open, beside that it is fenced."""


class Outcome(Enum):
    """What became of a transaction that was decided."""

    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()
    """The brokers have forgotten it, or know another one under its id, which began later."""


def outcome(winner: Winner, found: TransactionDescription | None) -> Outcome:
    """Return what became of a winner, by the last transaction under its id."""
    if found is None or found.started_at_ms != winner.started_at_ms:
        return Outcome.UNKNOWN
    if found.state in COMMITTED:
        return Outcome.COMMITTED
    if found.state in ABORTED:
        return Outcome.ABORTED
    return Outcome.OPEN if found.producer == winner.producer else Outcome.UNKNOWN


def is_over(error: KafkaError) -> bool:
    """Whether an error of EndTxn says that there is no such transaction any more."""
    if isinstance(error, ProducerFencedError):
        return True
    return isinstance(error, BrokerError) and error.error.name in _ENDED


class Transactions:
    """The transactions of one prefix. Belongs to one thread at a time."""

    def __init__(self, client: KafkaClient, names: Names) -> None:
        self._client = client
        self._names = names
        self._lookups = Lookups(client, Wakeup())

    def close(self) -> None:
        """Close the connections that are this one's own."""
        self._lookups.close()

    def described(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, TransactionDescription | None]:
        """Return how the last transaction of each id stands."""
        return describe_transactions(self._client, transactional_ids)

    def outcomes(self, winners: Sequence[Winner]) -> dict[Winner, Outcome]:
        """Return what became of transactions that were decided."""
        found = self.described(each.transactional_id for each in winners)
        return {each: outcome(each, found[each.transactional_id]) for each in winners}

    def abandoned(self, but: Iterable[PreparedTransaction]) -> list[PreparedTransaction]:
        """Return what attempts under this prefix have left open, beside these.

        What brokers do not tell soon is left to its timeout.
        """
        known = {each.transactional_id for each in but}
        try:
            listed, _ = list_transactions(self._client, [ONGOING], timeout_ms=_SWEEP_MS)
            ids = [
                each.transactional_id
                for each in listed
                if self._names.is_task_id(each.transactional_id)
                and each.transactional_id not in known
            ]
            found = describe_transactions(self._client, ids, timeout_ms=_SWEEP_MS)
        except KafkaError as error:
            prefix = self._names.prefix
            logger.warning("Open transactions of %r cannot be listed: %s", prefix, error)
            return []
        return [
            PreparedTransaction(each.transactional_id, each.producer)
            for each in found.values()
            if each is not None and each.state == ONGOING
        ]

    def abort(self, transactions: Iterable[PreparedTransaction]) -> None:
        """Abort these as far as they are open; what cannot be aborted soon times out."""
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
        """End these, several at once; return what went wrong with each.

        All of it takes at most `timeout_ms`, by default `default.api.timeout.ms`. `reached` is
        called after each one.
        """
        if timeout_ms is None:
            timeout_ms = self._client.config.default_api_timeout_ms
        deadline = Deadline.after_ms(timeout_ms)

        def end(client: KafkaClient, each: PreparedTransaction) -> None:
            if deadline.expired:
                what = f"the end of {each.transactional_id}"
                raise KafkaTimeoutError(f"{what}: others took all of {timeout_ms} ms")
            coordinator = TransactionCoordinator(client, each.transactional_id)
            coordinator.end(each.producer, commit=commit, timeout_ms=deadline.remaining_ms())
            reached()

        return [_error_of(each) for each in self._lookups.ask_each(end, transactions)]


def _error_of(ended: Lookup[None]) -> KafkaError | None:
    try:
        ended.result()
    except KafkaError as error:
        return error
    return None
