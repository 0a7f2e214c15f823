"""A worker's slots: the transactional ids that belong to one process, and to no other.

A slot holds one open transaction until a driver has decided about its micro-batch. A slot of an
earlier micro-batch is used again. In the second generation that needs no request: the end of a
transaction raises the epoch by one, and a worker writes with the next epoch. If that transaction
is still open, the broker refuses the rows with INVALID_PRODUCER_EPOCH. Then the worker takes a new
slot.

A later transaction under an id proves to drivers that the decided one before it was committed
(`settling`). So a worker goes on in a slot only

- within half of the timeout after the slot's transaction began: it cannot have timed out, and
  nobody else aborts what is decided. The other half is for rows on their way to the broker; or
- after it has asked, and the brokers say that it was committed.

Any other slot is never used again. Its last state stays, for those who look for it.
"""

from dataclasses import dataclass

from spark_kafka_source.admin.transactions import COMMITTED, Begun
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.stories import InitProducerId, Story, ask, describe
from spark_kafka_source.producer import Generation, ProducerId

SLOT_BITS = 10
"""The bits of an id's attempt field that number the slots. All other bits name the worker."""
RANDOM_BITS = 32 + 32 - SLOT_BITS


@dataclass(slots=True)
class Slot:
    """One transactional id, its last transaction, and the micro-batch of that."""

    transactional_id: str
    producer: ProducerId
    batch_id: int
    began_ms: int
    """Before the transaction began. By this process's clock, which only runs forward."""
    until_ms: int | None = None
    """The first rows must be sent before this time, or else to a new slot; None for any time."""

    @property
    def is_guess(self) -> bool:
        """Whether brokers may refuse the epoch, since nobody has asked them for it."""
        return self.until_ms is not None


class TooManySlotsError(ValueError):
    """A worker has more open transactions than its ids can number."""


class Slots:
    """The slots of one worker process for one prefix and run. One thread may use it at a time."""

    def __init__(
        self, names: Names, run_id: str, owner: int, generation: Generation, timeout_ms: int
    ) -> None:
        """`owner` is a random number of `RANDOM_BITS` bits that no other process has."""
        self._names, self._run_id, self._owner = names, run_id, owner
        self._generation, self._timeout_ms = generation, timeout_ms
        self._slots: list[Slot] = []
        self._count = 0

    def begin(self, batch_id: int, now_ms: int) -> Story[Slot]:
        """Return a slot for an attempt of this micro-batch. Its producer may begin a transaction.

        `now_ms` is by this process's clock. Raises `TooManySlotsError`.
        """
        for slot in [each for each in self._slots if each.batch_id < batch_id]:
            self.retire(slot)
            continued = yield from self._continued(slot, batch_id, now_ms)
            if continued is not None:
                self._slots.append(continued)
                return continued
        return (yield from self.new(batch_id, now_ms))

    def new(self, batch_id: int, now_ms: int) -> Story[Slot]:
        """Return a new slot, as after INVALID_PRODUCER_EPOCH. Raises `TooManySlotsError`."""
        if self._count >= 1 << SLOT_BITS:
            raise TooManySlotsError(f"a worker has used {self._count} transactional ids in one run")
        transactional_id = self._id(self._count)
        self._count += 1
        producer: ProducerId = yield from ask(InitProducerId(transactional_id))
        slot = Slot(transactional_id, producer, batch_id, now_ms)
        self._slots.append(slot)
        return slot

    def retire(self, slot: Slot) -> None:
        """Never use a slot again."""
        self._slots.remove(slot)

    def _continued(self, slot: Slot, batch_id: int, now_ms: int) -> Story[Slot | None]:
        """Return the slot with the producer with which it goes on; None if it must not."""
        after_end = self._generation.after_end(slot.producer)
        until_ms = slot.began_ms + self._timeout_ms // 2
        if self._generation is Generation.SECOND and after_end is not None and now_ms < until_ms:
            return Slot(slot.transactional_id, after_end, batch_id, now_ms, until_ms)
        described = yield from describe([(slot.transactional_id, Begun(slot.producer))])
        found = described[slot.transactional_id]
        if found is None or found.state not in COMMITTED:
            return None
        producer = found.producer
        if self._generation is Generation.FIRST:
            producer = yield from ask(InitProducerId(slot.transactional_id))
        elif producer == slot.producer:
            # A former coordinator tells the end of an earlier transaction, or somebody has ended
            # this one as in the first generation.
            return None
        return Slot(slot.transactional_id, producer, batch_id, now_ms)

    def _id(self, number: int) -> str:
        attempt_bits = 32 - SLOT_BITS
        task, rest = self._owner >> attempt_bits, self._owner & ((1 << attempt_bits) - 1)
        attempt = rest << SLOT_BITS | number
        return str(self._names.task_id(self._run_id, task, attempt))
