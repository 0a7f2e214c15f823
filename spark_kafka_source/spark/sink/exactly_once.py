"""The exactly-once guarantee: each attempt writes in a transaction that the driver ends."""

import os
import re
import threading
import uuid
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    KafkaError,
    LocalError,
    error_named,
)
from spark_kafka_source.exactly_once.committing import Commits
from spark_kafka_source.exactly_once.decision import BatchId, Content
from spark_kafka_source.exactly_once.driver import PreparedWrite
from spark_kafka_source.exactly_once.names import Names, prefix_of_query
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.exactly_once.requests import DescribeTransactions, Steps, ask
from spark_kafka_source.exactly_once.slots import Slot
from spark_kafka_source.exactly_once.step_runner import StepRunner
from spark_kafka_source.exactly_once.worker import Worker
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import (
    Generation,
    TransactionCoordinator,
    TransactionStateError,
    generation_of,
)
from spark_kafka_source.records.fingerprint import FINGERPRINTS
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.sink.guarantee import (
    AtLeastOnce,
    Attempt,
    Begun,
    Messages,
    Written,
    kept_clients,
    kept_producers,
)
from spark_kafka_source.spark.sink.options import TIMEOUT_OPTION, SinkOptions

logger = logger_of(__name__)

T = TypeVar("T")

_INVALID_TIMEOUT = error_named("INVALID_TRANSACTION_TIMEOUT")
# Each attempt takes its own id. This id stands for it in the configuration.
_SOME_ID = "pykafka"
_LAST_WORDS_SECONDS = 5.0
# No transaction is begun under the id that marks a plain batch as aborted.
_MARK_TIMEOUT_MS = 1_000
_MARKING_MS = 5_000
_MOST_RUNS = 64
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_REFUSALS = {
    "INVALID_PRODUCER_EPOCH",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TXN_STATE",
    "PRODUCER_FENCED",
    "TRANSACTION_ABORTABLE",
}
"""Leaders' errors for a transaction's first rows that may come from a wrong guess of the epoch."""


class UnknownBatchError(LocalError):
    """Spark does not tell a task its micro-batch, so a replay could not be recognized."""


class WriteAbortedError(LocalError):
    """The driver has given up the write. The rows of a task that still ran are aborted."""


@dataclass(frozen=True, slots=True)
class Run:
    """The writes of one run under one prefix, or those of a plain batch."""

    client: ClientConfig
    names: Names
    id: str
    """The id of the run, or of the plain batch's write."""
    timeout_ms: int
    """How long a transaction may be open, in milliseconds."""
    batch: BatchId | None = field(compare=False)
    """The present micro-batch; None for a plain batch."""

    def ask(self, worker: Worker, steps: Steps[T]) -> T:
        """Run the steps of a worker."""
        with kept_clients.lent(self.client) as client:
            timeout_ms = worker.transaction_timeout_ms
            return StepRunner(client, self.names, worker.generation, timeout_ms).run(steps)

    @property
    def _mark(self) -> str:
        return self.names.aborted_id(self.id)

    def mark_aborted(self) -> None:
        """Tell the attempts of a plain batch that still write: they will not be committed."""
        with kept_clients.lent(self.client) as client:
            coordinator = TransactionCoordinator(client, self._mark)
            client.run(coordinator.init_producer_id(_MARK_TIMEOUT_MS, timeout_ms=_MARKING_MS))

    def check_not_aborted(self, worker: Worker) -> None:
        """Check that the driver still wants the rows of a plain batch.

        If rows cannot be computed, Spark's task fails at once, but its Python worker still writes
        the rows before them. The driver may have listed the open transactions by then. Either it
        has seen this one, or this check sees the driver's mark. No later run aborts the rest of a
        plain batch, as it does in a stream.
        """
        if self.ask(worker, ask(DescribeTransactions((self._mark,))))[self._mark] is not None:
            raise WriteAbortedError("The driver has aborted the write, and so has this task")


@lru_cache(_MOST_RUNS)
def worker_of(run: Run) -> Worker:
    """Return this process's worker for a run. A new one looks at the brokers."""
    with kept_clients.lent(run.client) as client:
        client.history.was_reached |= run.batch is not None and run.batch.batch_id > 0
        worker = Worker(run.names, run.id, client.run(generation_of(client)), run.timeout_ms)
    if run.batch is not None:
        run.ask(worker, worker.look(run.batch))
    return worker


# The child of a fork must not have the ids of its parent.
os.register_at_fork(after_in_child=worker_of.cache_clear)


@dataclass(eq=False)
class BegunTransaction(Begun):
    """An attempt that writes in a transaction."""

    run: Run
    worker: Worker
    slot: Slot

    @property
    def is_guess(self) -> bool:
        """Whether brokers may refuse the epoch: a transaction may still be open under the id."""
        return self.slot.is_guess

    def begin_anew(self, error: KafkaError) -> None:
        """Begin in another slot, if brokers refuse the epoch of this one. Else raise the error.

        The earlier transaction under the id is still open. If the first rows for other brokers
        have begun the next one meanwhile, no driver decides about it.
        """
        # After a refusal the producer takes no more rows.
        is_state = isinstance(error, TransactionStateError)
        if not is_state and not (isinstance(error, BrokerError) and error.error.name in _REFUSALS):
            raise error
        logger.info("%s is not used again: %s", self.slot.transactional_id, error)
        self.slot = self.run.ask(self.worker, self.worker.replace_refused(self.slot))
        self.producer.begin_at(self.worker.beginning(self.slot))

    def end(self, written: Written) -> Written:
        """Leave the transaction open, and tell the driver how to end it.

        Raises `WriteAbortedError` if the driver has aborted the write meanwhile.
        """
        if self.run.batch is None:
            self.run.check_not_aborted(self.worker)
        worker, prepared = self.worker, self.producer.prepare_transaction()
        written = replace(
            written, prepared=prepared, seen=worker.seen, generation=worker.generation
        )
        return super().end(written)

    def give_up(self) -> None:
        """Abort the transaction, so that no reader waits for it; after 5 s leave it to time out."""
        # Begin anew in the next task: after an error, brokers may say other things.
        worker_of.cache_clear()
        thread = threading.Thread(target=self._abort, name="aborting", daemon=True)
        thread.start()
        thread.join(_LAST_WORDS_SECONDS)
        super().give_up()

    def _abort(self) -> None:
        try:
            self.producer.abort_transaction()
        except Exception as error:
            logger.info("A transaction is left to its timeout: %s", error)


@dataclass(frozen=True, slots=True)
class ExactlyOnce(AtLeastOnce):
    """Rows count once the driver has decided about their micro-batch, and they count once.

    A plain batch does not run again, so it needs no decision: the driver commits all transactions,
    or aborts them.
    """

    options: SinkOptions
    write_id: str
    """The id of a plain batch's write, in place of a run's id."""

    @classmethod
    def of(cls, options: SinkOptions) -> "ExactlyOnce":
        """Return the guarantee of a writer with these options."""
        config = replace(options.producer, transactional_id=_SOME_ID)
        return cls(config, options, uuid.uuid4().hex)

    def _run(self, attempt: Attempt, batch_id: int | None) -> Run:
        batch, prefix = _batch(attempt, batch_id), self.options.prefix
        query_id, run_id = (batch.query_id, batch.run_id) if batch else (self.write_id,) * 2
        names = Names(prefix_of_query(query_id) if prefix is None else prefix)
        timeout_ms = self.options.transaction_timeout_ms
        return Run(self.config.client, names, run_id, timeout_ms, batch)

    # -- in a task ---------------------------------------------------------------------------------

    def settle(self, attempt: Attempt) -> None:
        """Look at the brokers, in the first task that a process has of a run."""
        worker_of(self._run(attempt, attempt.batch_id))

    def begin(self, attempt: Attempt) -> BegunTransaction:
        """Begin this attempt's transaction."""
        run = self._run(attempt, attempt.batch_id)
        worker = worker_of(run)
        try:
            slot = run.ask(worker, worker.begin(attempt.batch_id or 0))
        except BaseException as error:
            worker_of.cache_clear()
            if isinstance(error, BrokerError) and error.error == _INVALID_TIMEOUT:
                expected = "The brokers' 'transaction.max.timeout.ms' is less: give no more than it"
                raise ConfigurationError(
                    TIMEOUT_OPTION, "is {}", expected, run.timeout_ms
                ) from error
            raise
        producer = kept_producers.take(self.config)
        producer.begin_at(worker.beginning(slot))
        return BegunTransaction(self.config, producer, run, worker, slot)

    # -- on the driver -----------------------------------------------------------------------------

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Decide that these attempts make up the micro-batch, and end their transactions."""
        written = [task for task in messages if task is not None]
        if not written:
            return
        run = self._run(written[0].attempt, batch_id)
        told = [(task.prepared, task.seen) for task in written if task.prepared is not None]
        prepared = tuple(each for each, _ in told)
        content, write = _content(written), self.options.topic or ""
        checkpoint = self.options.checkpoint
        with kept_commits.lent(self._committing(run, written)) as commits:
            if run.batch is None:
                commits.end_all(prepared)
                return
            seen = frozenset(each for _, each in told)
            commits.commit(PreparedWrite(run.batch, prepared, seen, content, write, checkpoint))

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Abort the attempts' transactions, unless the micro-batch is decided with them.

        This includes the attempts of the same run that have sent no message. If rows cannot be
        computed, Spark tells the writer that they end, and does not pass on its message. If no
        task has sent a message, the run of a stream is not known; then the next run aborts them.
        """
        written = [task for task in messages if task is not None]
        if not written and batch_id is not None:
            return
        run = self._run(written[0].attempt if written else Attempt(0, 0), batch_id)
        prepared = [task.prepared for task in written if task.prepared is not None]
        with kept_commits.lent(self._committing(run, written)) as commits:
            if run.batch is not None:
                commits.abort(run.batch, prepared)
                return
            try:
                run.mark_aborted()
            finally:
                commits.abort_all(prepared, run.id)

    def _committing(self, run: Run, written: list[Written]) -> "Committing":
        """Return the key of a driver's commits. The generation is that of its tasks.

        Some of them may have begun before an upgrade of the brokers, which serve both generations.
        """
        tasks = {task.generation for task in written if task.prepared is not None}
        generation = Generation.SECOND if tasks == {Generation.SECOND} else Generation.FIRST
        return run, generation, self.options.caution


def _content(written: list[Written]) -> Content:
    """Return the amount of all rows."""
    rows = sum(task.row_count for task in written)
    size = sum(task.byte_count for task in written)
    return Content(rows, size, sum(task.fingerprint for task in written) % FINGERPRINTS)


def _batch(attempt: Attempt, batch_id: int | None) -> BatchId | None:
    """Return the micro-batch's id; None for a plain batch. Raises `UnknownBatchError`.

    The run tells a replay from a second write of the same micro-batch.
    """
    known_id = attempt.batch_id if batch_id is None else batch_id
    if attempt.query_id is None and known_id is None:
        return None
    if attempt.query_id is None or known_id is None:
        known = f"the query is {attempt.query_id}, and the micro-batch {known_id}"
        raise UnknownBatchError(f"Spark tells a task too little to write exactly once: {known}")
    if attempt.run_id is None or not re.fullmatch(_UUID, attempt.run_id):
        raise UnknownBatchError(
            f"The job group is {attempt.run_id!r}, where Spark has the id of the query's run, "
            "which writing exactly once needs: do not call 'setJobGroup' within foreachBatch"
        )
    return BatchId(attempt.query_id, attempt.run_id, known_id)


Committing = tuple[Run, Generation, Caution]


def _begin_commits(committing: Committing) -> Commits:
    run, generation, caution = committing
    client = KafkaClient(run.client)
    client.history.was_reached = True  # By the tasks.
    return Commits(client, run.names, generation, caution)


kept_commits: Pool[Committing, Commits] = Pool(_begin_commits, Commits.close)
"""The driver's memory and connections, kept from one micro-batch to the next. After an error it
begins without memory: it reads its own last decision."""
