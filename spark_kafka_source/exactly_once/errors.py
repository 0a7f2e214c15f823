"""Errors of a micro-batch that is written exactly once."""

from collections.abc import Mapping, Sequence
from itertools import chain

from spark_kafka_source.errors import KafkaError, LocalError, RemoteError, listed
from spark_kafka_source.exactly_once.decision import BatchId, Content, Outcome, written_to
from spark_kafka_source.exactly_once.names import PREFIX_OPTION, TaskId


class PrefixInUseError(LocalError):
    """The decisions under a prefix belong to another query, or contradict the checkpoint."""

    def __init__(self, prefix: str, found: BatchId, wanted: BatchId, reason: str) -> None:
        super().__init__(prefix, found, wanted, reason)
        self.prefix, self.found, self.wanted, self.reason = prefix, found, wanted, reason

    def _text(self) -> str:
        return (
            f"Option '{PREFIX_OPTION}': {self.wanted} cannot be written under {self.prefix!r}, "
            f"since the last batch decided there is {self.found}. {self.reason}"
        )


DOUBT_OPTION = "doubtfulReplays"


class ReplayDiffersError(LocalError):
    """A micro-batch is decided and written, and its replay has another number of rows or bytes.

    None of the replay's rows is written.
    """

    def __init__(
        self,
        prefix: str,
        batch: BatchId,
        written: Content,
        found: Content,
        write: str = "",
    ) -> None:
        super().__init__(prefix, batch, written, found, write)
        self.prefix, self.batch, self.write = prefix, batch, write
        self.written, self.found = written, found

    def _text(self) -> str:
        to = f" to {written_to(self.write)}"
        return (
            f"{self.batch} is decided and written{to} with {self.written}, and now it is to be "
            f"written with {self.found}. These are other rows under the same number, and none of "
            "them is written. A checkpoint that was restored from an older copy does this: put "
            "back the checkpoint that was in use last. If that one is gone, either have the whole "
            "batch written, the rows that are there already twice: "
            f"'spark-kafka-source groups delete {self.prefix}'. Or go on without these rows: set "
            f"'{DOUBT_OPTION}' to 'accept' for one start. Leave it at 'accept' for a query that "
            "computes other rows each time"
        )


class DoubtfulReplayError(LocalError):
    """Rows may be missing or doubled, which cannot be known; option 'doubtfulReplays' is 'fail'."""

    def __init__(self, prefix: str, found: str) -> None:
        super().__init__(prefix, found)
        self.prefix, self.found = prefix, found

    def _text(self) -> str:
        return (
            f"{self.found}. Look at the rows that are there. To go on, set '{DOUBT_OPTION}' to "
            f"'warn' for one start (the decisions are in group {self.prefix!r})"
        )


class PrefixIsGroupError(LocalError):
    """A prefix is also the name of a group to which consumers commit offsets."""

    def __init__(self, prefix: str, reason: str) -> None:
        super().__init__(prefix, reason)
        self.prefix, self.reason = prefix, reason

    def _text(self) -> str:
        return (
            f"Option '{PREFIX_OPTION}': {self.prefix!r} is also a group of consumers: "
            f"{self.reason}. Decisions are kept in the group of that name, and the group must have "
            "no other offsets. Give a prefix that is the name of no group"
        )


class OtherDriverError(RemoteError):
    """Another driver has begun to decide under the same prefix, so this one no longer may."""

    def __init__(self, prefix: str, found: str) -> None:
        super().__init__(prefix, found)
        self.prefix, self.found = prefix, found

    def _text(self) -> str:
        return (
            f"Another driver now decides under {self.prefix!r}, so this one must not. If it runs "
            "the same query elsewhere, that one goes on; if two queries share the prefix, give "
            f"each its own ('{PREFIX_OPTION}'); if foreachBatch writes in several threads at once, "
            f"write one after the other. What was found: {self.found}"
        )


class TransactionTimedOutError(RemoteError):
    """A task's transaction ended before the decision. Nothing is lost: the batch runs again."""


class NotYetCommittedError(RemoteError):
    """A micro-batch is decided, and some of its transactions are still open. Nothing is lost yet.

    `left` are the transactional ids of those tasks.
    """

    def __init__(self, batch: BatchId, left: Sequence[str], total: int, error: KafkaError) -> None:
        super().__init__(batch, tuple(left), total, error)
        self.batch, self.left, self.total, self.error = batch, tuple(left), total, error

    def _text(self) -> str:
        return (
            f"{self.batch} is decided, but {len(self.left)} of its {self.total} transactions could "
            f"not be committed: {ids_text(self.left)}; the first because of: {self.error}. Start "
            "the query again within 'kafka.transaction.timeout.ms': it commits them, and writes "
            "nothing twice"
        )


class DecidedRowsLostError(RemoteError):
    """Rows of a decided micro-batch are lost, or nobody knows whether they are.

    `found` has the transactional ids of those tasks by what is known of them. The rows of all other
    tasks are written, once. `runs_again` is false if the query has gone on to a later micro-batch,
    since code swallowed the error of the commit.
    """

    def __init__(
        self,
        batch: BatchId,
        found: Mapping[Outcome, Sequence[str]],
        total: int,
        *,
        runs_again: bool = True,
    ) -> None:
        found = {outcome: tuple(ids) for outcome, ids in found.items() if ids}
        super().__init__(batch, found, total)
        self.batch, self.found, self.total, self.runs_again = batch, found, total, runs_again

    def _text(self) -> str:
        task_ids = map(TaskId.parse, chain.from_iterable(self.found.values()))
        prefix = next((task_id.prefix for task_id in task_ids if task_id is not None), "")
        found = "; ".join(
            f"{len(ids)} are {outcome.value}: {ids_text(ids)}"
            for outcome, ids in self.found.items()
        )
        accept = f"'spark-kafka-source transactions finish {prefix} --accept-loss --execute'"
        if not self.runs_again:
            return (
                f"{self.batch} was decided, and an error of its commit was swallowed, or somebody "
                f"has ended its transactions: the query has gone on. Of its {self.total} "
                f"transactions {found}. The rows of the other tasks are written, once. The query "
                f"does not write that batch again: write the missing rows by other means. Then "
                f"{accept}, and start the query again. Errors within foreachBatch must end the "
                "query"
            )
        old = (
            " If a version before 0.4 has decided it, start that version once: it finishes the "
            "batch"
        )
        return (
            f"{self.batch} was decided. Of its {self.total} transactions {found}. The rows of all "
            f"other tasks are written, once.{old if Outcome.UNKNOWN in self.found else ''} Look "
            "whether the rows are there. Either have the whole batch written again, the rows that "
            f"are there twice: 'spark-kafka-source groups delete {prefix}'. Or go on without the "
            f"rows that are not there: {accept}. Then start the query again, and give its "
            "transactions more time ('kafka.transaction.timeout.ms')"
        )


class DecidedTransactionError(LocalError):
    """A transaction must not be aborted: its micro-batch is decided, and contains its rows."""

    def __init__(self, transactional_id: str, batch: BatchId) -> None:
        super().__init__(transactional_id, batch)
        self.transactional_id, self.batch = transactional_id, batch

    def _text(self) -> str:
        task_id = TaskId.parse(self.transactional_id)
        prefix = "" if task_id is None else task_id.prefix
        return (
            f"{self.transactional_id} must not be aborted: {self.batch} is decided, and its rows "
            "would be lost. Start the query again, it commits them; or, if nobody is to start it, "
            f"'spark-kafka-source transactions finish {prefix} --execute'"
        )


class LateAbortError(RemoteError):
    """A transaction is aborted, and its micro-batch was decided meanwhile, or may be.

    `batch` is None if that is not known; `error` says why.
    """

    def __init__(
        self, transactional_id: str, batch: BatchId | None, error: KafkaError | None = None
    ) -> None:
        super().__init__(transactional_id, batch, error)
        self.transactional_id, self.batch, self.error = transactional_id, batch, error

    def _text(self) -> str:
        found = f"{self.batch} was decided meanwhile, with its rows"
        if self.batch is None:
            found = f"a batch with its rows may be decided, which is not known: {self.error}"
        return (
            f"{self.transactional_id} is aborted, and {found}. Start the query again: if no row of "
            "that batch is committed, it writes the batch again, and nothing is lost. Else it ends "
            "with DecidedRowsLostError, which says what to choose"
        )


class NothingDecidedError(RemoteError):
    """No decision exists under a prefix: there never was one, or the brokers have forgotten it."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self.prefix = prefix

    def _text(self) -> str:
        return f"Nothing is decided under {self.prefix!r}, or the brokers have forgotten it"


class NothingSeenError(RemoteError):
    """A decided micro-batch is aborted in part, and no reader has seen any of its rows."""

    def __init__(self, batch: BatchId, lost: Sequence[str]) -> None:
        super().__init__(batch, tuple(lost))
        self.batch, self.lost = batch, tuple(lost)

    def _text(self) -> str:
        return (
            f"{self.batch} is decided, and brokers have aborted {ids_text(self.lost)}; no reader "
            "has seen any of it. Start the query again: it writes the batch again, and nothing is "
            "lost. With '--accept-loss' the rest is committed, and the query goes on after it"
        )


class PartlyCommittedError(RemoteError):
    """A batch that will not run again is committed in part: some transactions did not end."""

    def __init__(self, failed: Sequence[tuple[str, KafkaError]], total: int) -> None:
        super().__init__(tuple(failed), total)
        self.failed, self.total = tuple(failed), total

    def _text(self) -> str:
        ids = ids_text([each for each, _ in self.failed])
        return (
            f"{self.total - len(self.failed)} of {self.total} transactions are committed. These "
            f"are aborted, or their end is not known: {ids}; "
            f"the first because of: {self.failed[0][1]}. 'spark-kafka-source transactions describe'"
            " shows how they ended"
        )


def ids_text(transactional_ids: Sequence[str]) -> str:
    """Return what tells these ids from the others of their query."""
    return "ids that end with " + listed(map(_end, transactional_ids))


def _end(transactional_id: str) -> str:
    """Return what tells an id from the others of its run."""
    task_id = TaskId.parse(transactional_id)
    return transactional_id if task_id is None else f".{task_id.task}.{task_id.attempt}"
