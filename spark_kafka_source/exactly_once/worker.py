"""The part of one process in one run: it looks at the brokers once, and keeps slots.

Before its first transaction in a run, it looks at the epoch of the control id and at the last
decisions. Each of the two can prove to the run's driver that no other driver has decided since. It
also commits the open transactions that an earlier run has decided, before new rows take their time.
"""

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import BatchId, Seen
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import DescribeTransactions, FetchDecisions, Steps
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
        for _, decision in decisions.latest():
            if decision.batch.query_id == batch.query_id and decision.batch.run_id != batch.run_id:
                yield from settle_for_others(decision)
    except KafkaError as error:
        logger.warning("Decided rows are not committed yet, which the driver will do: %s", error)
    seen = frozenset(decision.id for _, decision in decisions.latest())
    return Seen(control and control.producer, seen)


class Worker:
    """One process's part in the writes of a run, or of a plain batch. For one thread at a time."""

    def __init__(
        self, names: Names, space: str, generation: Generation, transaction_timeout_ms: int
    ) -> None:
        """`space` is that of the ids: the run, or the write of a plain batch."""
        self._names = names
        self.generation = generation
        self.transaction_timeout_ms = transaction_timeout_ms
        self.seen = Seen()
        """What `look` has seen. A plain batch needs no look."""
        self._slots = Slots(names, space, generation)

    def look(self, batch: BatchId) -> Steps[None]:
        """Look at the brokers before the first transaction."""
        self.seen = yield from look(self._names, batch)

    def begin(self, batch_id: int) -> Steps[Slot]:
        """Return a slot for an attempt of this micro-batch."""
        return (yield from self._slots.begin(batch_id))

    def replace_refused(self, refused: Slot) -> Steps[Slot]:
        """Return a new slot in place of one whose epoch brokers refuse."""
        self._slots.retire(refused)
        return (yield from self._slots.new(refused.batch_id))

    def beginning(self, slot: Slot) -> Beginning:
        """Return what a producer begins with in a slot."""
        return Beginning(slot.transactional_id, slot.producer, self.generation)
