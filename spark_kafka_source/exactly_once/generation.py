"""The two generations of transactions, and what differs between them.

In the second (KIP-890, `transaction.version` 2) the end of a transaction raises the epoch of its
producer. So a transactional id and an epoch name one transaction.
"""

from enum import Enum

from spark_kafka_source.producer import ProducerId


class Generation(Enum):
    """The generation of transactions that a cluster and this client speak."""

    FIRST = 1
    SECOND = 2

    @property
    def keeps_control(self) -> bool:
        """Whether a driver fences others once in a run, and not before each decision.

        In the first generation a late copy of a decision's request could enter the next decision.
        """
        return self is Generation.SECOND

    def after_end(self, producer: ProducerId) -> ProducerId | None:
        """Return the id and epoch after the end of a transaction; None if brokers choose a new id.

        A worker of the second generation begins its next transaction with it, and asks nobody.
        """
        return producer.bumped() if self is Generation.SECOND else producer


def is_next(before: ProducerId | None, after: ProducerId) -> bool:
    """Whether nobody has asked for an epoch between these two. `before` is None for a new id."""
    expected = None if before is None else before.bumped()
    return after.epoch == 0 if expected is None else after == expected
