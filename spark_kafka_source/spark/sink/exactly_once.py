"""Rows are written exactly once: each attempt in a transaction, which the driver ends or not."""

import logging
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spark_kafka_source.admin.transactions import (
    ONGOING,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import KafkaError, LocalError
from spark_kafka_source.exactly_once import (
    BatchId,
    Names,
    TaskId,
    TwoPhaseCommit,
    begin_attempt,
    chosen_timeout_ms,
    prefix_of_query,
    refused_timeout,
)
from spark_kafka_source.producer import KafkaProducer, PreparedTransaction, ProducerConfig
from spark_kafka_source.spark.sink.attempt import Attempt, Written
from spark_kafka_source.spark.sink.guarantee import Guarantee, Messages
from spark_kafka_source.spark.sink.kept import Kept
from spark_kafka_source.spark.sink.options import SinkOptions
from spark_kafka_source.spark.sink.producers import kept_producers
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# Each attempt has an id of its own; this stands for it in the configuration.
_SOME_ID = "pykafka"
_LAST_WORDS_SECONDS = 5.0
# A worker that writes with more configurations than this in turn asks anew.
_MOST_TIMEOUTS = 64


class UnknownBatchError(LocalError):
    """Spark does not say which micro-batch a task belongs to, so that a replay cannot be known."""


@dataclass(frozen=True, slots=True)
class ExactlyOnce(Guarantee):
    """Rows count once the driver has decided about their micro-batch, and then once.

    In a plain batch, which is not run again, there is no decision to keep: the driver ends all
    transactions, or aborts them.
    """

    config: ProducerConfig
    prefix: str | None
    timeout_ms: int | None
    """How long a transaction may be open; None for as long as the brokers allow."""
    write_id: str
    """In place of the run, for a plain batch."""

    @classmethod
    def of(cls, options: SinkOptions) -> "ExactlyOnce":
        """Return that of a writer with these options."""
        config = replace(options.producer, transactional_id=_SOME_ID)
        return cls(config, options.prefix, options.transaction_timeout_ms, uuid.uuid4().hex)

    # -- in a task ---------------------------------------------------------------------------------

    def begin(self, attempt: Attempt) -> KafkaProducer:
        """Return a producer with a transaction of this attempt's own."""
        _batch(attempt, attempt.batch_id)
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
        """Leave the transaction open, and tell the driver how to end it."""
        try:
            prepared = producer.prepare_transaction()
        except BaseException:
            self.give_up(producer)
            raise
        kept_producers.put(self.config, producer)
        return replace(written, prepared=prepared)

    def give_up(self, producer: KafkaProducer) -> None:
        """Abort the transaction, so that no reader waits for it; if that lasts, brokers do."""

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
                two_phase.commit(batch, prepared, _where(written))

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Abort the attempts' transactions, unless the micro-batch is decided with them.

        Also those of attempts that have no message, but were tasks of the same run: where the rows
        cannot be computed, Spark tells the writer that they end, and then that nobody listens. The
        run of a stream is not known if no task has told; then it is up to the next run.
        """
        written = [each for each in messages if each is not None]
        attempt = written[0].attempt if written else Attempt(0, 0)
        batch = _batch(attempt, batch_id) if written else None
        if batch is None and batch_id is not None:
            return
        # Both know the same of an attempt that has told.
        prepared = list(dict.fromkeys([*_prepared(written), *self._left_open(attempt)]))
        if not prepared:
            return
        with kept_commits.lent(self._committing(attempt)) as two_phase:
            if batch is None:
                two_phase.abort_all(prepared)
            else:
                two_phase.abort(batch, prepared, _where(written))

    def _left_open(self, attempt: Attempt) -> list[PreparedTransaction]:
        """Return what is open of the run that an attempt is of."""
        names, run_id = self._names(attempt), attempt.run_id or self.write_id

        def is_of_run(transactional_id: str) -> bool:
            found = TaskId.parse(transactional_id)
            return found is not None and (found.prefix, found.run_id) == (names.prefix, run_id)

        try:
            with KafkaClient(self.config.client) as client:
                listed, _ = list_transactions(client, [ONGOING])
                ids = [each.transactional_id for each in listed if is_of_run(each.transactional_id)]
                found = describe_transactions(client, ids)
        except KafkaError as error:
            logger.warning("Open transactions of %r cannot be listed: %s", names.prefix, error)
            return []
        return [
            PreparedTransaction(each.transactional_id, each.producer, len(each.topic_partitions))
            for each in found.values()
            if each is not None and each.state == ONGOING
        ]

    def _names(self, attempt: Attempt) -> Names:
        if self.prefix is not None:
            return Names(self.prefix)
        return Names(prefix_of_query(attempt.query_id or self.write_id))

    def _committing(self, attempt: Attempt) -> "_Committing":
        return _Committing(self.config.client, self._names(attempt))


def _prepared(written: Sequence[Written]) -> list[PreparedTransaction]:
    return [each.prepared for each in written if each.prepared is not None]


def _batch(attempt: Attempt, batch_id: int | None) -> BatchId | None:
    """Return which micro-batch it is; None for a plain batch. Raises `UnknownBatchError`.

    The ids of a run must be no other run's: else a replay would abort, by beginning, what the run
    before it has decided.
    """
    found = attempt.batch_id if batch_id is None else batch_id
    if attempt.query_id is None and found is None:
        return None
    if attempt.query_id is None or found is None:
        known = f"the query is {attempt.query_id}, and the micro-batch {found}"
        raise UnknownBatchError(f"Spark says of a task too little to write exactly once: {known}")
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
    """Return a partition that is there, since rows were written to its topic."""
    topics = [each.topic for each in written if each.topic is not None]
    return TopicPartition(min(topics), 0) if topics else None


class _Timeouts:
    """For how long brokers let transactions be open; asked once in each process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[ClientConfig, int | None], int] = {}

    def of(self, config: ClientConfig, given_ms: int | None) -> int:
        """Return it in milliseconds. Raises as `chosen_timeout_ms` does."""
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
        """Ask brokers anew the next time: what they allow may have been changed."""
        with self._lock:
            self._known = {key: each for key, each in self._known.items() if key[0] != config}


@dataclass(frozen=True, slots=True)
class _Committing:
    """Of which cluster and query a driver commits."""

    client: ClientConfig
    names: Names

    def begin(self) -> TwoPhaseCommit:
        return TwoPhaseCommit(KafkaClient(self.client), self.names)


timeouts = _Timeouts()
kept_commits: Kept[_Committing, TwoPhaseCommit] = Kept(_Committing.begin, TwoPhaseCommit.close)
"""On the driver: connections to the coordinators, from one micro-batch to the next."""
