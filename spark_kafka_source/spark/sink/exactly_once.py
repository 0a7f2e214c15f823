"""The exactly-once guarantee: each attempt writes in a transaction that the driver ends."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, LocalError
from spark_kafka_source.exactly_once import (
    BatchId,
    Caution,
    Checkpoint,
    Commits,
    Content,
    Names,
    PreparedWrite,
    Slot,
    StepRunner,
    Steps,
    Worker,
    chosen_timeout_ms,
    prefix_of_query,
    refused_timeout,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import (
    Generation,
    KafkaProducer,
    PreparedTransaction,
    ProducerConfig,
    TransactionCoordinator,
    TransactionStateError,
    generation_of,
)
from spark_kafka_source.records.fingerprint import FINGERPRINTS
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.sink.guarantee import (
    Attempt,
    Begun,
    Guarantee,
    Messages,
    Written,
    kept_clients,
    kept_producers,
)
from spark_kafka_source.spark.sink.options import SinkOptions
from spark_kafka_source.spark.sink.run_workers import Writing, run_workers

logger = logger_of(__name__)

_ANY_CHECKPOINT = Checkpoint()
# Each attempt takes its own id. This id stands for it in the configuration.
_SOME_ID = "pykafka"
_LAST_WORDS_SECONDS = 5.0
# No transaction is begun under the id that marks a run as aborted.
_MARK_TIMEOUT_MS = 1_000
_MARKING_MS = 5_000
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
class ExactlyOnce(Guarantee["BegunTransaction"]):
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
    write: str = ""
    """The topic of the write, by which it is named; "" if a column names topics."""
    caution: Caution = Caution.WARN
    checkpoint: Checkpoint = _ANY_CHECKPOINT

    @classmethod
    def of(cls, options: SinkOptions) -> "ExactlyOnce":
        """Return the guarantee of a writer with these options."""
        config = replace(options.producer, transactional_id=_SOME_ID)
        timeout_ms = options.transaction_timeout_ms
        write_id = uuid.uuid4().hex
        write = options.topic or ""
        return cls(config, options.prefix, timeout_ms, write_id, write, options.caution)

    # -- in a task ---------------------------------------------------------------------------------

    def settle(self, attempt: Attempt) -> None:
        """Look at the brokers, in the first task that a process has of a run."""
        if _batch(attempt, attempt.batch_id) is not None:
            self._worker(attempt)

    def begin(self, attempt: Attempt) -> "BegunTransaction":
        """Begin this attempt's transaction."""
        worker = self._worker(attempt)
        try:
            slot = self._run(worker, attempt, worker.begin(attempt.batch_id or 0))
        except BaseException as error:
            run_workers.forget(self._writing(attempt))
            if isinstance(error, KafkaError):
                raise refused_timeout(error, worker.transaction_timeout_ms) from error
            raise
        begun = BegunTransaction(kept_producers.take(self.config), attempt, worker, slot)
        begun.producer.begin_at(worker.beginning(slot))
        return begun

    def begin_anew(self, begun: "BegunTransaction", error: KafkaError) -> None:
        """Begin in another slot, if brokers refuse the epoch of this one. Else raise the error.

        The earlier transaction under the id is still open. If the first rows for other brokers
        have begun the next one meanwhile, no driver decides about it.
        """
        if not _is_refusal(error):
            raise error
        worker, refused = begun.worker, begun.slot
        logger.info("%s is not used again: %s", refused.transactional_id, error)
        begun.slot = self._run(worker, begun.attempt, worker.replace_refused(refused))
        begun.producer.begin_at(worker.beginning(begun.slot))

    def _worker(self, attempt: Attempt) -> Worker:
        """Return this process's worker for the attempt's run. A new one looks at the brokers."""

        def make() -> Worker:
            with kept_clients.lent(self.config.client) as client:
                client.history.was_reached |= attempt.goes_on
                timeout_ms = chosen_timeout_ms(client, self.timeout_ms)
                generation = client.run(generation_of(client))
                names = self._names(attempt)
                batch = _batch(attempt, attempt.batch_id)
                if batch is None:
                    return Worker(names, self.write_id, generation, timeout_ms)
                worker = Worker(names, batch.run_id, generation, timeout_ms)
                StepRunner(client, names, generation).run(worker.look(batch))
                return worker

        return run_workers.of(self._writing(attempt), make)

    def _run(self, worker: Worker, attempt: Attempt, steps: Steps[Slot]) -> Slot:
        """Run the steps of a worker, and return the slot. Usually they need no request."""
        try:
            first = next(steps)
        except StopIteration as end:
            return cast(Slot, end.value)
        names, timeout_ms = self._names(attempt), worker.transaction_timeout_ms
        with kept_clients.lent(self.config.client) as client:
            return StepRunner(client, names, worker.generation, timeout_ms).run(steps, first)

    def _writing(self, attempt: Attempt) -> Writing:
        run_id = attempt.run_id or self.write_id
        return Writing(self.config.client, self._names(attempt), run_id)

    def end(self, begun: "BegunTransaction", written: Written) -> Written:
        """Leave the transaction open, and tell the driver how to end it.

        Raises `WriteAbortedError` if the driver has aborted the write meanwhile.
        """
        producer, worker = begun.producer, begun.worker
        try:
            self._check_not_aborted(producer, written.attempt)
            prepared = producer.prepare_transaction()
        except BaseException:
            self.give_up(begun)
            raise
        kept_producers.put(self.config, producer)
        return replace(written, prepared=prepared, seen=worker.seen, generation=worker.generation)

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

    def give_up(self, begun: "BegunTransaction") -> None:
        """Abort the transaction, so that no reader waits for it; after 5 s leave it to time out."""
        producer = begun.producer

        def abort() -> None:
            try:
                producer.abort_transaction()
            except Exception as error:
                logger.info("A transaction is left to its timeout: %s", error)

        run_workers.forget(self._writing(begun.attempt))
        thread = threading.Thread(target=abort, name="aborting", daemon=True)
        thread.start()
        thread.join(_LAST_WORDS_SECONDS)
        producer.close(timeout_seconds=0)

    # -- on the driver -----------------------------------------------------------------------------

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Decide that these attempts make up the micro-batch, and end their transactions."""
        written = [task for task in messages if task is not None]
        if not written:
            return
        batch = _batch(written[0].attempt, batch_id)
        prepared = _prepared(written)
        if batch is None and not prepared:
            return
        with _lent(self._committing(written)) as commits:
            if batch is None:
                commits.end_all(prepared)
                return
            seen = frozenset(task.seen for task in written if task.prepared is not None)
            content = _content(written)
            commits.commit(
                PreparedWrite(batch, tuple(prepared), seen, content, self.write, self.checkpoint)
            )

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Abort the attempts' transactions, unless the micro-batch is decided with them.

        This includes the attempts of the same run that have sent no message. If rows cannot be
        computed, Spark tells the writer that they end, and does not pass on its message. If no
        task has sent a message, the run of a stream is not known; then the next run aborts them.
        """
        written = [task for task in messages if task is not None]
        batch = _batch(written[0].attempt, batch_id) if written else None
        if batch is None and batch_id is not None:
            return
        if batch is None:
            self._mark_aborted(written[0].attempt if written else Attempt(0, 0))
        with _lent(self._committing(written)) as commits:
            if batch is None:
                commits.abort_all(_prepared(written), self.write_id)
            else:
                commits.abort(batch, _prepared(written))

    def _mark_aborted(self, attempt: Attempt) -> None:
        """Tell the attempts of a plain batch that still write: they will not be committed."""
        transactional_id = self._names(attempt).aborted_id(self.write_id)
        try:
            with KafkaClient(self.config.client) as client:
                coordinator = TransactionCoordinator(client, transactional_id)
                marked = coordinator.init_producer_id(_MARK_TIMEOUT_MS, timeout_ms=_MARKING_MS)
                client.run(marked)
        except KafkaError as error:
            logger.warning("%s cannot be told to the tasks: %s", transactional_id, error)

    def _names(self, attempt: Attempt) -> Names:
        if self.prefix is not None:
            return Names(self.prefix)
        return Names(prefix_of_query(attempt.query_id or self.write_id))

    def _committing(self, written: Sequence[Written]) -> "_Committing":
        """Return the query that a driver commits for. The generation is that of its tasks.

        Some of them may have begun before an upgrade of the brokers, which serve both generations.
        """
        attempt = written[0].attempt if written else Attempt(0, 0)
        tasks = {task.generation for task in written if task.prepared is not None}
        generation = Generation.SECOND if tasks == {Generation.SECOND} else Generation.FIRST
        names, run_id = self._names(attempt), attempt.run_id or self.write_id
        return _Committing(self.config.client, names, run_id, generation, self.caution)


def _content(written: Sequence[Written]) -> Content:
    """Return the amount of all rows."""
    return Content(
        sum(task.row_count for task in written),
        sum(task.byte_count for task in written),
        sum(task.fingerprint for task in written) % FINGERPRINTS,
    )


def _prepared(written: Sequence[Written]) -> list[PreparedTransaction]:
    return [task.prepared for task in written if task.prepared is not None]


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
    if attempt.run_id is None or not _is_uuid(attempt.run_id):
        raise UnknownBatchError(
            f"The job group is {attempt.run_id!r}, where Spark has the id of the query's run, "
            "which writing exactly once needs: do not call 'setJobGroup' within foreachBatch"
        )
    return BatchId(attempt.query_id, attempt.run_id, known_id)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _is_refusal(error: KafkaError) -> bool:
    """Whether an error of a guess's first rows may come from the guess."""
    if isinstance(error, BrokerError):
        return error.error.name in _REFUSALS
    # After a refusal the producer takes no more rows.
    return isinstance(error, TransactionStateError)


@dataclass(eq=False, slots=True)
class BegunTransaction(Begun):
    """An attempt that writes in a transaction."""

    attempt: Attempt
    worker: Worker
    slot: Slot

    @property
    def is_guess(self) -> bool:
        """Whether brokers may refuse the epoch: a transaction may still be open under the id."""
        return self.slot.is_guess


@dataclass(frozen=True, slots=True)
class _Committing:
    """The cluster, the names and the run of the query that a driver commits for."""

    client: ClientConfig
    names: Names
    run_id: str
    generation: Generation
    caution: Caution

    def begin(self) -> Commits:
        client = KafkaClient(self.client)
        client.history.was_reached = True  # By the tasks.
        return Commits(client, self.names, self.generation, self.caution)


kept_commits: Pool[_Committing, Commits] = Pool(_Committing.begin, Commits.close)
"""The driver's memory and connections, kept from one micro-batch to the next."""


@contextmanager
def _lent(committing: _Committing) -> Iterator[Commits]:
    """Take commits and put them back. They remember what they have decided, also after an error.

    Code in foreachBatch may swallow the error and go on.
    """
    commits = kept_commits.take(committing)
    try:
        yield commits
    except KafkaError:
        kept_commits.put(committing, commits)
        raise
    except BaseException:
        commits.close()
        raise
    kept_commits.put(committing, commits)
