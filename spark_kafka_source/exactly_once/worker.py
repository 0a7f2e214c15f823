"""The part of one process in one run: it looks at the brokers once, and keeps slots.

Before its first transaction in a run, it looks at the epoch of the control id and at the last
decisions. Each of the two can prove to the run's driver that no other driver has decided since. It
also commits the open transactions that an earlier run has decided, before new rows take their time.
"""

import time

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import BatchId, LastDecisions, Seen
from spark_kafka_source.exactly_once.leases import Owner
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import (
    DescribeTransactions,
    FetchDecisions,
    Steps,
)
from spark_kafka_source.exactly_once.settling import settle_for_others
from spark_kafka_source.exactly_once.slots import Slot, Slots
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import Beginning, Generation

logger = logger_of(__name__)


def look(names: Names, batch: BatchId) -> Steps[Seen]:
    """Look at the brokers, and commit transactions that another run of the query has decided."""
    answered = yield (DescribeTransactions((names.control_id,)), FetchDecisions())
    described, decisions = answered.answers
    control = described[names.control_id]
    try:
        yield from _end_earlier(decisions, batch)
    except KafkaError as error:
        logger.warning("What is decided and not ended is left to the driver: %s", error)
    return Seen(
        control and control.producer, frozenset(decision.id for _, decision in decisions.latest())
    )


def _end_earlier(decisions: LastDecisions, batch: BatchId) -> Steps[None]:
    for _, decision in decisions.latest():
        if decision.batch.query_id == batch.query_id and decision.batch.run_id != batch.run_id:
            yield from settle_for_others(decision)


class Worker:
    """One process's part in the writes of a run, or of a plain batch. For one thread at a time."""

    def __init__(
        self,
        names: Names,
        space: str,
        generation: Generation,
        transaction_timeout_ms: int,
        owner: Owner | None = None,
    ) -> None:
        """`space` is that of the ids. Without an owner, no other process has these ids."""
        self._names = names
        self.generation = generation
        self.transaction_timeout_ms = transaction_timeout_ms
        self.seen = Seen()
        """What `look` has seen. A plain batch needs no look."""
        owner = Owner() if owner is None else owner
        self._slots = Slots(names, space, owner, generation, transaction_timeout_ms)

    def look(self, batch: BatchId) -> Steps[None]:
        """Look at the brokers before the first transaction; see `slots`.

        If nothing is decided, committed ids tell the driver that the brokers have forgotten a
        decision. So the worker does not use such ids.
        """
        self.seen = yield from look(self._names, batch)
        if self.seen.decisions:
            yield from self._slots.inherit()

    def begin(self, batch_id: int) -> Steps[Slot]:
        """Return a slot for an attempt of this micro-batch."""
        return (yield from self._slots.begin(batch_id, _now_ms()))

    def replace_refused(self, refused: Slot) -> Steps[Slot]:
        """Return a new slot in place of one whose epoch brokers refuse."""
        self._slots.retire(refused)
        return (yield from self._slots.new(refused.batch_id, _now_ms()))

    def beginning(self, slot: Slot) -> Beginning:
        """Return what a producer begins with in a slot."""
        return Beginning(slot.transactional_id, slot.producer, self.generation)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
