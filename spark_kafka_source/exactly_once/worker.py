"""A process that writes for a run: its look at the brokers, and its slots."""

import time

from spark_kafka_source.exactly_once.decision import BatchId
from spark_kafka_source.exactly_once.leases import Owner
from spark_kafka_source.exactly_once.looking import Seen, look
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.slots import Slot, Slots
from spark_kafka_source.exactly_once.stories import Story
from spark_kafka_source.producer import Beginning, Generation


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

    def look(self, batch: BatchId) -> Story[None]:
        """Look at the brokers before the first transaction; see `looking` and `slots`.

        Ids that are committed, where nothing is decided, tell the driver that the brokers have
        forgotten a decision. So they are left alone.
        """
        self.seen = yield from look(self._names, batch)
        if self.seen.lasts:
            yield from self._slots.inherit()

    def begin(self, batch_id: int) -> Story[Slot]:
        """Return a slot for an attempt of this micro-batch. Raises `TooManySlotsError`."""
        return (yield from self._slots.begin(batch_id, _now_ms()))

    def begin_anew(self, refused: Slot) -> Story[Slot]:
        """Return a new slot in place of one whose epoch brokers refuse."""
        self._slots.retire(refused)
        return (yield from self._slots.new(refused.batch_id, _now_ms()))

    def beginning(self, slot: Slot) -> Beginning:
        """Return what a producer begins with in a slot."""
        by_seconds = None if slot.until_ms is None else slot.until_ms / 1000
        return Beginning(slot.transactional_id, slot.producer, self.generation, by_seconds)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
