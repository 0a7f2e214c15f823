"""The driver's side of a write on brokers: commits and aborts, for a thread that waits."""

import time
from collections.abc import Sequence

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.exactly_once.decision import BatchId, Content
from spark_kafka_source.exactly_once.decisions import existing
from spark_kafka_source.exactly_once.driver import Driver, Verdict, Work
from spark_kafka_source.exactly_once.endings import Transactions
from spark_kafka_source.exactly_once.errors import OtherDriverError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.exactly_once.telling import Telling
from spark_kafka_source.exactly_once.undecided import end_all
from spark_kafka_source.net import Deadline, pause
from spark_kafka_source.producer import Generation, PreparedTransaction
from spark_kafka_source.topic_partition import TopicPartition

_USUAL = Caution()


class Commits:
    """Commit and abort the micro-batches of one run, or one plain batch.

    One thread may use it at a time. See `Driver` for the errors.
    """

    def __init__(
        self,
        client: KafkaClient,
        names: Names,
        generation: Generation = Generation.FIRST,
        caution: Caution = _USUAL,
    ) -> None:
        self._client, self._names = client, names
        self._driver = Driver(names, generation, caution)
        self._telling = Telling(client, names, generation)
        self._transactions = Transactions(client, names, generation)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def commit(self, work: Work) -> Verdict:
        """Decide that these transactions are the micro-batch, and commit them."""
        return self._telling.tell(self._driver.commit(work))

    def commit_nothing(
        self, batch: BatchId, content: Content | None = None, write: str = ""
    ) -> None:
        """End what was decided before a write without rows."""
        self._telling.tell(self._driver.commit_nothing(batch, content, write))

    def abort(
        self,
        batch: BatchId,
        attempts: Sequence[PreparedTransaction],
        where: TopicPartition | None = None,
    ) -> None:
        """Abort this run's transactions, unless the micro-batch is decided with them.

        Another driver may fence this one meanwhile. Then this one fences that one, which runs its
        micro-batch again. Two that abort at once would fence each other by turns, for as long as
        their pauses are shorter than an abort. So a pause is up to twice the time gone so far.
        """
        if where is not None:
            where = self._client.run(
                existing(self._client, [where])
            )  # No broker takes an offset of a deleted topic.
        began_seconds = time.monotonic()
        deadline = Deadline.after_ms(self._client.config.default_api_timeout_ms)
        while True:
            try:
                return self._telling.tell(self._driver.abort(batch, attempts, where))
            except OtherDriverError:
                if deadline.expired:
                    raise
            pause_seconds = CHANCE.uniform(0, 2 * (time.monotonic() - began_seconds))
            self._client.run(pause(min(pause_seconds, deadline.remaining_seconds())))

    def end_all(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Commit these without a decision: those of a write that will not run again.

        Raises `TransactionTimedOutError` before anything is committed, and `PartlyCommittedError`
        after that.
        """
        self._client.run(end_all(self._transactions, transactions))

    def abort_all(self, transactions: Sequence[PreparedTransaction], run_id: str) -> None:
        """Abort these transactions and all open ones of a run, of which nothing is decided.

        One that cannot be aborted within 5 s ends by its timeout.
        """
        self._telling.tell(self._driver.abort_undecided(run_id, transactions))
