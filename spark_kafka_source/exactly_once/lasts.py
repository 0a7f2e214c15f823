"""The last decisions under a prefix: one of each write.

Code in foreachBatch may write a micro-batch to several topics, one write after the other. A write
is named by its topic. Each has decisions of its own, at a partition of its own in the group of the
prefix. Before each decision all earlier ones are brought to their end. So only the decisions about
the latest micro-batch can have open transactions.
"""

from dataclasses import dataclass
from typing import NamedTuple

from spark_kafka_source.exactly_once.decision import Decision
from spark_kafka_source.topic_partition import TopicPartition


class Kept(NamedTuple):
    """A decision, and the partition whose offset holds it."""

    where: TopicPartition
    decision: Decision


@dataclass(frozen=True, slots=True)
class Lasts:
    """The last decision of each write, as the group holds them."""

    kept: tuple[Kept, ...] = ()

    def of(self, write: str) -> Decision | None:
        """Return a write's last decision.

        One of version 0.2.0 names no write. It belongs to the topic at which it is kept, or to the
        topics of a column.
        """
        for where, each in self.kept:
            if each.write == write or (each.write is None and write in ("", where.topic)):
                return each
        return None

    def at(self, where: TopicPartition) -> Decision | None:
        """Return the decision that is kept at a partition."""
        return dict(self.kept).get(where)

    def latest(self) -> tuple[Kept, ...]:
        """Return those about the latest micro-batch: only these can have open transactions."""
        batch_id = max((each.batch.batch_id for _, each in self.kept), default=0)
        return tuple(each for each in self.kept if each.decision.batch.batch_id == batch_id)

    def with_(self, new: Kept) -> "Lasts":
        """Return the last decisions after a new one, which replaces others."""
        replaced = {new.where, self._where(new.decision.write or "")}
        left = [each for each in self.kept if each.where not in replaced]
        return Lasts(tuple(sorted([*left, new], key=lambda each: each.where)))

    def _where(self, write: str) -> TopicPartition | None:
        found = (where for where, each in self.kept if (each.write or "") == write)
        return next(found, None)
