"""The numbers by which a partition's leader knows a batch that it has already (KIP-98, KIP-360)."""

from typing import NamedTuple

_COUNT = 1 << 31
MAX_EPOCH = (1 << 15) - 2
"""The last that a producer gives itself; Java's asks for a new producer id after it, too."""


class ProducerId(NamedTuple):
    """What the cluster knows a producer by. Of two with one id, the newer epoch counts."""

    producer_id: int
    epoch: int

    def bumped(self) -> "ProducerId | None":
        """Return it with the next epoch; None where there is none, and a new id is needed."""
        return None if self.epoch >= MAX_EPOCH else self._replace(epoch=self.epoch + 1)


class PreparedTransaction(NamedTuple):
    """A transaction that has all of its records, and whose end anyone may decide who knows this.

    Kafka's own producer has it as `PreparedTxnState` (KIP-939).
    """

    transactional_id: str
    producer: ProducerId
    partition_count: int = 0
    """To how many partitions it has written; 0 where that is not known."""


def next_sequence(sequence: int, record_count: int) -> int:
    """Return the sequence that follows a batch; after 2^31 - 1 comes 0."""
    return (sequence + record_count) % _COUNT
