"""The exactly-once guarantee: each attempt writes in a transaction that the driver ends."""

import logging
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import KafkaError, LocalError
from spark_kafka_source.exactly_once import (
    BatchId,
    Caution,
    Content,
    DecidedRowsLostError,
    Names,
    ReplayCheck,
    TwoPhaseCommit,
    begin_attempt,
    chosen_timeout_ms,
    left_open,
    prefix_of_query,
    refused_timeout,
)
from spark_kafka_source.producer import (
    KafkaProducer,
    PreparedTransaction,
    ProducerConfig,
    TransactionCoordinator,
)
from spark_kafka_source.spark.kept import Kept
from spark_kafka_source.spark.sink.amount import FINGERPRINTS
from spark_kafka_source.spark.sink.attempt import Attempt, Written
from spark_kafka_source.spark.sink.guarantee import Guarantee, Messages
from spark_kafka_source.spark.sink.options import SinkOptions
from spark_kafka_source.spark.sink.producers import kept_producers
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# Each attempt takes its own id. This id stands for it in the configuration.
_SOME_ID = "pykafka"
_LAST_WORDS_SECONDS = 5.0
# No transaction is begun under the id that marks a run as aborted.
_MARK_TIMEOUT_MS = 1_000
_MARKING_MS = 5_000
# A worker that writes with more configurations than this by turns asks the brokers again.
_MOST_TIMEOUTS = 64
_MOST_RUNS = 64


class UnknownBatchError(LocalError):
    """Spark does not tell a task its micro-batch, so a replay could not be recognized."""


class WriteAbortedError(LocalError):
    """The driver has given up the write. The rows of a task that still ran are aborted."""


@dataclass(frozen=True, slots=True)
class ExactlyOnce(Guarantee):
    """Rows count once the driver has decided about their micro-batch, and they count once.

    A plain batch does not run again, so it needs no decision: the driver commits all transactions,
    or aborts them.
    """

    config: ProducerConfig
    prefix: str | None
    timeout_ms: int | None
    """How long a transaction may be open, in milliseconds; None for 15 minutes, or less."""
    write_id: str
    """The id of a plain batch's write, in place of a run's id."""
    caution: Caution = field(default_factory=Caution)

    @classmethod
    def of(cls, options: SinkOptions) -> "ExactlyOnce":
        """Return the guarantee of a writer with these options."""
        config = replace(options.producer, transactional_id=_SOME_ID)
        timeout_ms = options.transaction_timeout_ms
        return cls(config, options.prefix, timeout_ms, uuid.uuid4().hex, options.caution)

    # -- in a task ---------------------------------------------------------------------------------

    def settle(self, attempt: Attempt) -> None:
        """End what was decided before, in the first task that a process has of a run.

        Look again after half of the timeout, before decided transactions time out.
        """
        batch = _batch(attempt, attempt.batch_id)
        if batch is None:
            return
        committing = self._committing(attempt)
        half_seconds = timeouts.of(self.config.client, self.timeout_ms) / 2000
        if runs.is_settled(committing, batch.run_id, half_seconds):
            return
        two_phase = committing.begin()
        try:
            two_phase.settle(batch)
        except DecidedRowsLostError:
            raise
        except KafkaError as error:
            logger.warning("What is decided and not ended is left to the driver: %s", error)
        else:
            runs.add(committing, batch.run_id)
        finally:
            two_phase.close()

    def begin(self, attempt: Attempt) -> KafkaProducer:
        """Return a producer that has begun this attempt's transaction."""
        timeout_ms = timeouts.of(self.config.client, self.timeout_ms)
        run_id = attempt.run_id or self.write_id
        task_id = self._names(attempt).task_id(run_id, attempt.partition, attempt.number)
        producer = kept_producers.take(self.config)
        try:
            begin_attempt(producer, task_id, timeout_ms)
        except BaseException as error:
            producer.close(timeout_seconds=0)
            timeouts.forget(self.config.client)
            if isinstance(error, KafkaError):
                raise refused_timeout(error, timeout_ms) from error
            raise
        return producer

    def end(self, producer: KafkaProducer, written: Written) -> Written:
        """Leave the transaction open, and tell the driver how to end it.

        Raises `WriteAbortedError` if the driver has aborted the write meanwhile.
        """
        try:
            self._check_not_aborted(producer, written.attempt)
            prepared = producer.prepare_transaction()
        except BaseException:
            self.give_up(producer)
            raise
        kept_producers.put(self.config, producer)
        return replace(written, prepared=prepared)

    def _check_not_aborted(self, producer: KafkaProducer, attempt: Attempt) -> None:
        """Check that the driver still wants the rows of a plain batch.

        If rows cannot be computed, Spark's task fails at once, but its Python worker still writes
        the rows before them. The driver may have listed the open transactions by then. Either it
        has seen this one, or this check sees the driver's mark. No later run aborts the rest of a
        plain batch, as it does in a stream.
        """
        if attempt.query_id is not None:
            return
        mark = self._names(attempt).aborted_id(self.write_id)
        try:
            is_aborted = producer.knows_id(mark)
        except KafkaError as error:
            logger.warning("%s cannot be looked up: %s", mark, error)
            return
        if is_aborted:
            raise WriteAbortedError(f"The driver has aborted the write; so is {attempt}")

    def give_up(self, producer: KafkaProducer) -> None:
        """Abort the transaction, so that no reader waits for it; after 5 s leave it to time out."""

        def abort() -> None:
            try:
                producer.abort_transaction()
            except Exception as error:
                logger.info("A transaction is left to its timeout: %s", error)

        thread = threading.Thread(target=abort, name="aborting", daemon=True)
        thread.start()
        thread.join(_LAST_WORDS_SECONDS)
        producer.close(timeout_seconds=0)

    # -- on the driver -----------------------------------------------------------------------------

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Decide that these attempts make up the micro-batch, and end their transactions."""
        written = [each for each in messages if each is not None]
        if not written:
            return
        attempt = written[0].attempt
        prepared = _prepared(written)
        batch = _batch(attempt, batch_id)
        if batch is None and not prepared:
            return
        with kept_commits.lent(self._committing(attempt)) as two_phase:
            if batch is None:
                two_phase.end_all(prepared)
            else:
                two_phase.commit(batch, prepared, _where(written), self._content(written))

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Abort the attempts' transactions, unless the micro-batch is decided with them.

        This includes the attempts of the same run that have sent no message. If rows cannot be
        computed, Spark tells the writer that they end, and does not pass on its message. If no
        task has sent a message, the run of a stream is not known; then the next run aborts them.
        """
        written = [each for each in messages if each is not None]
        attempt = written[0].attempt if written else Attempt(0, 0)
        batch = _batch(attempt, batch_id) if written else None
        if batch is None and batch_id is not None:
            return
        if batch is None:
            self._mark_aborted(attempt)
        prepared = _prepared(written)
        # Both lists may have the transaction of an attempt with a message.
        every = list(dict.fromkeys([*prepared, *self._left_open(attempt)]))
        if not every:
            return
        with kept_commits.lent(self._committing(attempt)) as two_phase:
            if batch is None:
                two_phase.abort_all(every)
                return
            if None in messages:  # Then Spark has not called `commit`: these are not decided.
                two_phase.abort_all(prepared)
                every = [each for each in every if each not in prepared]
            if every:
                two_phase.abort(batch, every, _where(written))

    def _mark_aborted(self, attempt: Attempt) -> None:
        """Tell the attempts of a plain batch that still write that nobody will commit them."""
        transactional_id = self._names(attempt).aborted_id(self.write_id)
        try:
            with KafkaClient(self.config.client) as client:
                coordinator = TransactionCoordinator(client, transactional_id)
                marked = coordinator.init_producer_id(_MARK_TIMEOUT_MS, timeout_ms=_MARKING_MS)
                client.run(marked)
        except KafkaError as error:
            logger.warning("%s cannot be told to the tasks: %s", transactional_id, error)

    def _left_open(self, attempt: Attempt) -> list[PreparedTransaction]:
        """Return the open transactions of an attempt's run."""
        names, run_id = self._names(attempt), attempt.run_id or self.write_id
        with KafkaClient(self.config.client) as client:
            return left_open(client, names, lambda each: names.is_of_run(each, run_id))

    def _names(self, attempt: Attempt) -> Names:
        if self.prefix is not None:
            return Names(self.prefix)
        return Names(prefix_of_query(attempt.query_id or self.write_id))

    def _committing(self, attempt: Attempt) -> "_Committing":
        return _Committing(self.config.client, self._names(attempt), self.caution)

    def _content(self, written: Sequence[Written]) -> Content:
        """Return the amount of all rows. A task without rows has no fingerprint."""
        rows = sum(each.row_count for each in written)
        size = sum(each.byte_count for each in written)
        if self.caution.check is not ReplayCheck.CONTENTS:
            return Content(rows, size)
        return Content(rows, size, sum(each.fingerprint or 0 for each in written) % FINGERPRINTS)


def _prepared(written: Sequence[Written]) -> list[PreparedTransaction]:
    return [each.prepared for each in written if each.prepared is not None]


def _batch(attempt: Attempt, batch_id: int | None) -> BatchId | None:
    """Return the micro-batch's id; None for a plain batch. Raises `UnknownBatchError`.

    Each run must have transactional ids of its own. Otherwise a replay would begin under the same
    ids, and so abort transactions that the earlier run has decided.
    """
    found = attempt.batch_id if batch_id is None else batch_id
    if attempt.query_id is None and found is None:
        return None
    if attempt.query_id is None or found is None:
        known = f"the query is {attempt.query_id}, and the micro-batch {found}"
        raise UnknownBatchError(f"Spark tells a task too little to write exactly once: {known}")
    if attempt.run_id is None or not _is_uuid(attempt.run_id):
        raise UnknownBatchError(
            f"The job group is {attempt.run_id!r}, where Spark has the id of the query's run, "
            "which writing exactly once needs: do not call 'setJobGroup' within foreachBatch"
        )
    return BatchId(attempt.query_id, attempt.run_id, found)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _where(written: Sequence[Written]) -> TopicPartition | None:
    """Return a partition that exists, since its topic was written to; None without rows."""
    topics = [each.topic for each in written if each.topic is not None]
    return TopicPartition(min(topics), 0) if topics else None


class _Timeouts:
    """The timeout of transactions. Brokers are asked for their limits once in each process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[ClientConfig, int | None], int] = {}

    def of(self, config: ClientConfig, given_ms: int | None) -> int:
        """Return the timeout in milliseconds. Raises as `chosen_timeout_ms` does."""
        key = config, given_ms
        with self._lock:
            found = self._known.get(key)
        if found is None:
            with KafkaClient(config) as client:
                found = chosen_timeout_ms(client, given_ms)
            with self._lock:
                if len(self._known) >= _MOST_TIMEOUTS:
                    self._known.clear()
                self._known[key] = found
        return found

    def forget(self, config: ClientConfig) -> None:
        """Ask the brokers again the next time: their maximum may have changed."""
        with self._lock:
            self._known = {key: each for key, each in self._known.items() if key[0] != config}


class _Runs:
    """The last run of each query that this process has settled, and the time of its last task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[_Committing, tuple[str, float]] = {}

    def is_settled(self, committing: "_Committing", run_id: str, within_seconds: float) -> bool:
        """Whether tasks of this process have settled before this run, the last one so lately."""
        now_seconds = time.monotonic()
        with self._lock:
            known, at_seconds = self._known.get(committing, ("", 0.0))
            if known != run_id or now_seconds - at_seconds > within_seconds:
                return False
            self._known[committing] = run_id, now_seconds
            return True

    def add(self, committing: "_Committing", run_id: str) -> None:
        """Remember that this run's tasks have nothing to settle for now."""
        with self._lock:
            if len(self._known) >= _MOST_RUNS:
                self._known.clear()
            self._known[committing] = run_id, time.monotonic()


@dataclass(frozen=True, slots=True)
class _Committing:
    """The cluster and the names of the query that a driver commits for."""

    client: ClientConfig
    names: Names
    caution: Caution

    def begin(self) -> TwoPhaseCommit:
        return TwoPhaseCommit(KafkaClient(self.client), self.names, caution=self.caution)


timeouts = _Timeouts()
runs = _Runs()
kept_commits: Kept[_Committing, TwoPhaseCommit] = Kept(_Committing.begin, TwoPhaseCommit.close)
"""The driver's connections to the coordinators, kept from one micro-batch to the next."""
