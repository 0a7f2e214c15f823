"""A worker's slots: the transactional ids that belong to one process, and to no other.

A slot holds one open transaction until a driver has decided about its micro-batch. A slot of an
earlier micro-batch is used again. In the second generation that needs no request: the end of a
transaction raises the epoch by one, and a worker writes with the next epoch. If that transaction
is still open, the broker refuses the rows with INVALID_PRODUCER_EPOCH. Then the worker takes a new
slot.

A later transaction under an id proves to drivers that the decided one before it was committed
(`settling`). So a worker goes on in a slot only

- within half of the timeout after the slot's transaction began: it cannot have timed out, and
  no other process aborts decided transactions. The other half is for rows on their way to the
  broker; or
- after it has asked, and the brokers say that it was committed.

Any other slot is never used again. Its last state stays, for those who look for it.

A process may inherit the slots of one that has ended (`leases`), and asks about each of them first.
Before each request for a slot it notes what is about to begin there: a late copy of a request may
come after the end of its process. So a slot is inherited only if the transaction that was noted
last was committed, and never while InitProducerId may be on its way.
"""

from dataclasses import dataclass, replace

from spark_kafka_source.admin.transactions import (
    COMMITTED,
    ONGOING,
    Begun,
    TransactionDescription,
)
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.leases import OWNER_BITS, Owner
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import (
    DescribeTransactions,
    InitProducerId,
    Steps,
    ask,
    describe,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import Generation, ProducerId

logger = logger_of(__name__)

SLOT_BITS = 64 - OWNER_BITS
"""The bits of an id's attempt field that number the slots. All other bits name the worker."""


@dataclass(slots=True)
class Slot:
    """One transactional id, its last transaction, and the micro-batch of that."""

    owner: Owner
    number: int
    """Among the slots of this owner."""
    transactional_id: str
    producer: ProducerId
    batch_id: int
    began_ms: int
    """Before the transaction began. By this process's clock, which only runs forward."""
    is_guess: bool = False
    """Whether brokers may refuse the epoch, since no request has asked them for it."""
    is_committed: bool = False
    """Whether the last transaction is known to be committed. `producer` is the next one then."""


class Slots:
    """The slots of one worker process for one prefix and run. One thread may use it at a time."""

    def __init__(
        self, names: Names, space: str, owner: Owner, generation: Generation, timeout_ms: int
    ) -> None:
        self._names, self._space, self._owner = names, space, owner
        self._generation, self._timeout_ms = generation, timeout_ms
        self._slots: list[Slot] = []
        self._count = len(owner.begun)

    def inherit(self) -> Steps[None]:
        """Take over the slots of former processes whose last transactions were committed.

        A former coordinator may tell an earlier state. Then the slot is left to the next process.
        """
        begun = {
            self._id(number): (number, producer)
            for number, producer in enumerate(self._owner.begun)
            if producer is not None
        }
        if not begun:
            return
        try:
            states = yield from ask(DescribeTransactions(tuple(begun)))
        except KafkaError as error:
            logger.info("The transactional ids of a former process are left alone: %s", error)
            return
        for transactional_id, (number, producer) in begun.items():
            state: TransactionDescription | None = states[transactional_id]
            if state is None or state.state not in {ONGOING, *COMMITTED}:
                self._owner.note(number, None)
            elif state.state in COMMITTED and state.producer == self._after_end(producer):
                slot = Slot(
                    self._owner, number, transactional_id, state.producer, -1, 0, is_committed=True
                )
                self._slots.append(slot)

    def begin(self, batch_id: int, now_ms: int) -> Steps[Slot]:
        """Return a slot for an attempt of this micro-batch. Its producer may begin a transaction.

        `now_ms` is by this process's clock.
        """
        for slot in [slot for slot in self._slots if slot.batch_id < batch_id]:
            self._slots.remove(slot)
            continued = yield from self._continued(slot, batch_id, now_ms)
            if continued is not None:
                self._slots.append(continued)
                return continued
        return (yield from self.new(batch_id, now_ms))

    def new(self, batch_id: int, now_ms: int) -> Steps[Slot]:
        """Return a new slot, as after INVALID_PRODUCER_EPOCH."""
        if self._count >= 1 << SLOT_BITS:  # All ids of the owner number are used.
            self._owner, self._count = Owner(), 0
        number, self._count = self._count, self._count + 1
        slot = Slot(self._owner, number, self._id(number), ProducerId(-1, -1), batch_id, now_ms)
        slot.producer = yield from self._initialised(slot)
        slot.owner.note(number, slot.producer)
        self._slots.append(slot)
        return slot

    def retire(self, slot: Slot) -> None:
        """Never use a slot again."""
        self._slots.remove(slot)
        slot.owner.note(slot.number, None)

    def _continued(self, slot: Slot, batch_id: int, now_ms: int) -> Steps[Slot | None]:
        """Return the slot with the producer with which it goes on; None if it must not."""
        after_end = self._after_end(slot.producer)
        is_second = self._generation is Generation.SECOND
        half_ms = slot.began_ms + self._timeout_ms // 2
        is_guess = False
        if slot.is_committed:
            producer: ProducerId | None = slot.producer
        elif is_second and after_end is not None and now_ms < half_ms:
            producer, is_guess = after_end, True
        else:
            producer = yield from self._ended(slot)
        if producer is None:
            return None
        if not is_second:
            producer = yield from self._initialised(slot)
        slot.owner.note(slot.number, producer)
        return replace(
            slot,
            producer=producer,
            batch_id=batch_id,
            began_ms=now_ms,
            is_guess=is_guess,
            is_committed=False,
        )

    def _ended(self, slot: Slot) -> Steps[ProducerId | None]:
        """Ask what comes after the slot's transaction; None if that was not committed."""
        described = yield from describe([(slot.transactional_id, Begun(slot.producer))])
        state = described[slot.transactional_id]
        if state is None or state.state not in COMMITTED:
            return None
        if self._generation is Generation.SECOND and state.producer == slot.producer:
            # A former coordinator tells the end of an earlier transaction, or somebody has ended
            # this one as in the first generation.
            return None
        producer: ProducerId = state.producer
        return producer

    def _initialised(self, slot: Slot) -> Steps[ProducerId]:
        """Ask for a new epoch. The request may come late, and ends what another process begins."""
        slot.owner.note(slot.number, None)
        producer: ProducerId = yield from ask(InitProducerId(slot.transactional_id))
        return producer

    def _after_end(self, producer: ProducerId) -> ProducerId | None:
        return self._generation.after_end(producer)

    def _id(self, number: int) -> str:
        attempt_bits = 32 - SLOT_BITS
        owner = self._owner.number
        task, rest = owner >> attempt_bits, owner & ((1 << attempt_bits) - 1)
        attempt = rest << SLOT_BITS | number
        return str(self._names.task_id(self._space, task, attempt))
