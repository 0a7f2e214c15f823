"""The driver's side of a write on brokers: commits and aborts, for a thread that waits.

A plain batch, which Spark does not run again, ends without a decision.
"""

from collections.abc import Sequence

from spark_kafka_source.admin.transactions import Begun
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.checks import check_left, check_open
from spark_kafka_source.exactly_once.decision import BatchId
from spark_kafka_source.exactly_once.decision_store import existing
from spark_kafka_source.exactly_once.driver import Driver, PreparedWrite
from spark_kafka_source.exactly_once.endings import Transactions
from spark_kafka_source.exactly_once.errors import OtherDriverError, PartlyCommittedError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.exactly_once.step_runner import StepRunner
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, pause
from spark_kafka_source.producer import Generation, PreparedTransaction
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

_USUAL = Caution.WARN
# Brokers end an expired transaction within this time. One that is open longer means that the
# clocks differ.
_CLEANUP_MS = 30_000
_SEEN_WITHIN_MS = 30_000
_FIRST_PAUSE_SECONDS = 0.02


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
        self._runner = StepRunner(client, names, generation)
        self._transactions = Transactions(client, names, generation)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def commit(self, prepared_write: PreparedWrite) -> None:
        """Decide that these transactions are the micro-batch, and commit them."""
        self._runner.run(self._driver.commit(prepared_write))

    def abort(self, batch: BatchId, attempts: Sequence[PreparedTransaction]) -> None:
        """Abort this run's transactions, unless the micro-batch is decided with them."""
        topics = {topic for attempt in attempts for topic in attempt.topics}
        # No broker takes an offset of a deleted topic.
        where = self._client.run(
            existing(self._client, [TopicPartition(topic, 0) for topic in topics])
        )
        try:
            self._runner.run(self._driver.abort(batch, attempts, where))
        except OtherDriverError as error:  # Its next decision aborts what is left.
            logger.warning("%s is left to another driver: %s", batch, error)

    def end_all(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Commit the transactions of a write that will not run again, without a decision.

        Raises `TransactionTimedOutError` before anything is committed, and `PartlyCommittedError`
        after that.
        """
        self._client.run(_end_all(self._transactions, transactions))

    def abort_all(self, transactions: Sequence[PreparedTransaction], run_id: str) -> None:
        """Abort these transactions and all open ones of a run, of which nothing is decided.

        One that cannot be aborted within 5 s ends by its timeout.
        """
        self._runner.run(self._driver.abort_undecided(run_id, transactions))


async def _end_all(transactions: Transactions, prepared: Sequence[PreparedTransaction]) -> None:
    begun = {
        each.transactional_id: Begun(each.producer, generation=transactions.generation)
        for each in prepared
    }
    states = await transactions.described(begun, begun)
    for each in prepared:
        state = check_open(each, states[each.transactional_id])
        left_ms = state.remaining_ms()
        if left_ms > -_CLEANUP_MS:
            check_left(state, left_ms)
    answers = await transactions.end([each[:2] for each in prepared], commit=True)
    failed = [
        (each.transactional_id, answer)
        for each, answer in zip(prepared, answers, strict=True)
        if isinstance(answer, KafkaError)
    ]
    if failed:
        raise PartlyCommittedError(failed, len(prepared)) from failed[0][1]
    await _wait_until_seen(transactions, begun)


async def _wait_until_seen(transactions: Transactions, left: dict[str, Begun]) -> None:
    """Wait until readers see the committed rows: a user may read them at once.

    A coordinator answers as soon as the end is certain, and tells the partitions after that.
    """
    deadline = Deadline.after_ms(_SEEN_WITHIN_MS)
    tries = 0
    while left and not deadline.expired:
        states = await transactions.described(left, left)
        left = {each: left[each] for each, state in states.items() if state and state.is_open}
        tries += 1
        if left:
            await pause(min(tries * _FIRST_PAUSE_SECONDS, 1.0))
    if left:
        logger.warning("%s transactions are committed, but not visible yet", len(left))
