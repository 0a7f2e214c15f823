"""A worker's slots: the transactional ids that belong to one process, and to no other.

A slot holds one open transaction until a driver has decided about its micro-batch. A slot of an
earlier micro-batch is used again.

- In the second generation that needs no request: the end of a transaction raises the epoch by one,
  and a worker writes with the next epoch. If the earlier transaction is still open, the broker
  refuses the rows with INVALID_PRODUCER_EPOCH. Then the worker takes a new slot.
- In the first generation the worker asks whether it was committed, and then for a new epoch: that
  request would abort an open transaction.

A new process takes new ids. Nobody infers from them what became of an earlier transaction.
"""

from dataclasses import dataclass

from spark_kafka_source.admin.transactions import COMMITTED, Begun
from spark_kafka_source.chance import CHANCE
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import InitProducerId, Steps, ask, described
from spark_kafka_source.producer import Generation, ProducerId

OWNER_BITS = 54
"""The bits of an id's two numbers that name the process, at random. The others name the slot."""
_SLOT_BITS = 64 - OWNER_BITS
_ATTEMPT_BITS = 32


@dataclass(frozen=True, slots=True)
class Slot:
    """One transactional id, its last transaction, and the micro-batch of that."""

    transactional_id: str
    producer: ProducerId
    batch_id: int
    is_guess: bool = False
    """Whether brokers may refuse the epoch, since no request has asked them for it."""


class Slots:
    """The slots of one worker process for one prefix and run. One thread may use it at a time."""

    def __init__(self, names: Names, space: str, generation: Generation) -> None:
        self._names, self._space, self._generation = names, space, generation
        self._slots: list[Slot] = []
        self._numbers = iter(range(0))

    def begin(self, batch_id: int) -> Steps[Slot]:
        """Return a slot for an attempt of this micro-batch. Its producer may begin a transaction.

        A slot whose transaction may still be open is never used again.
        """
        for slot in [slot for slot in self._slots if slot.batch_id < batch_id]:
            self._slots.remove(slot)
            producer = yield from self._following(slot)
            if producer is not None:
                is_guess = self._generation is Generation.SECOND
                self._slots.append(Slot(slot.transactional_id, producer, batch_id, is_guess))
                return self._slots[-1]
        return (yield from self.new(batch_id))

    def new(self, batch_id: int) -> Steps[Slot]:
        """Return a new slot, as after INVALID_PRODUCER_EPOCH."""
        transactional_id = self._next_id()
        producer = yield from ask(InitProducerId(transactional_id))
        slot = Slot(transactional_id, producer, batch_id)
        self._slots.append(slot)
        return slot

    def retire(self, slot: Slot) -> None:
        """Never use a slot again."""
        self._slots.remove(slot)

    def _following(self, slot: Slot) -> Steps[ProducerId | None]:
        """Return the producer with which a slot goes on; None if it must not."""
        if self._generation is Generation.SECOND:
            return self._generation.after_end(slot.producer)
        states = yield from ask(described(((slot.transactional_id, Begun(slot.producer)),)))
        state = states[slot.transactional_id]
        if state is None or state.state not in COMMITTED or state.producer != slot.producer:
            return None
        producer: ProducerId = yield from ask(InitProducerId(slot.transactional_id))
        return producer

    def _next_id(self) -> str:
        number = next(self._numbers, None)
        if number is None:  # All ids of the owner number are used.
            first = CHANCE.getrandbits(OWNER_BITS) << _SLOT_BITS
            self._numbers = iter(range(first, first + (1 << _SLOT_BITS)))
            number = next(self._numbers)
        task, attempt = divmod(number, 1 << _ATTEMPT_BITS)
        return str(self._names.task_id(self._space, task, attempt))
