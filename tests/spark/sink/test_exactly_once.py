"""The steps of an exactly-once writer in a task, and its steps on the driver."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    KafkaTimeoutError,
    error_named,
)
from spark_kafka_source.exactly_once import (
    BatchId,
    Content,
    DecidedRowsLostError,
    Names,
    Step,
    TwoPhaseCommit,
    attempts,
    endings,
)
from spark_kafka_source.exactly_once import two_phase as two_phase_module
from spark_kafka_source.exactly_once.unsettled import Unsettled
from spark_kafka_source.producer import (
    KafkaProducer,
    PreparedTransaction,
    ProducerId,
    TransactionOpenError,
)
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
)
from spark_kafka_source.spark.kept import Kept
from spark_kafka_source.spark.sink import exactly_once
from spark_kafka_source.spark.sink.attempt import Attempt, Written
from spark_kafka_source.spark.sink.exactly_once import (
    ExactlyOnce,
    UnknownBatchError,
    WriteAbortedError,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.memory_broker import MemoryBroker
from tests.producer.blocking import BlockingCoordinator
from tests.spark.settings import shipped
from tests.spark.sink.settings import parsed, values

RUN, OTHER_RUN = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
IN_STREAM = Attempt(3, 0, "q", RUN, 7)
ID = f"pykafka-q.{RUN}.3"
TRANSACTION = PreparedTransaction(f"{ID}.0", ProducerId(1000, 0))
WRITTEN = Written(IN_STREAM, 1, 1, "t", TRANSACTION)
BATCH = BatchId("q", RUN, 7)


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        broker.cluster.create_topic("t")
        yield broker


@pytest.fixture(autouse=True)
def fresh_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep no producer from one test to the next. Brokers allow transactions of one minute."""
    closing: list[Any] = []

    def making(make: Any) -> Any:
        def made(key: Any) -> Any:
            closing.append(make(key))
            return closing[-1]

        return made

    producers = Kept(making(KafkaProducer.of), lambda each: each.close(0))
    monkeypatch.setattr(exactly_once, "kept_producers", producers)
    monkeypatch.setattr(exactly_once, "timeouts", exactly_once._Timeouts())
    monkeypatch.setattr(exactly_once, "runs", exactly_once._Runs())
    monkeypatch.setattr(exactly_once, "chosen_timeout_ms", lambda _, given: given or 60_000)
    yield
    for each in closing:
        each.close()


def kept() -> list[object]:
    """Return the producers that wait for the next task."""
    return list(vars(exactly_once)["kept_producers"]._idle)


def guarantee(broker: MemoryBroker | None = None, **options: str) -> ExactlyOnce:
    given = {"topic": "t", "deliveryGuarantee": "exactly-once", **options}
    if broker is not None:
        given |= {
            "kafka.bootstrap.servers": str(broker.address()),
            "kafka.retry.backoff.ms": "1",
            "kafka.linger.ms": "0",
        }
    return shipped(ExactlyOnce.of(parsed(**given)))


def write(found: ExactlyOnce, attempt: Attempt, *texts: str) -> Written:
    """Write the rows in an attempt. Return its message to the driver."""
    found.settle(attempt)
    producer = found.begin(attempt)
    producer.send_columns("t", values(*texts))
    producer.flush(30)
    return shipped(found.end(producer, Written(attempt, len(texts), 1, "t")))


def states(broker: MemoryBroker) -> dict[str, str]:
    return {name: each.state for name, each in broker.cluster.transactions.items()}


# -- in a task -----------------------------------------------------------------------------------


def decided_by(broker: MemoryBroker, run_id: str) -> PreparedTransaction:
    """Decide micro-batch 7, and die before its transaction is committed."""
    written = write(guarantee(broker), replace(IN_STREAM, run_id=run_id), "a")
    assert written.prepared is not None

    def die(step: Step) -> None:
        if step is Step.DECIDED:
            raise KeyboardInterrupt

    client = KafkaClient(guarantee(broker).config.client)
    two_phase = TwoPhaseCommit(client, Names("pykafka-q"), die)
    where = TopicPartition("t", 0)
    with pytest.raises(KeyboardInterrupt):
        two_phase.commit(replace(BATCH, run_id=run_id), [written.prepared], where)
    two_phase.close()
    return written.prepared


def forget_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a new process: Spark ends a worker that has had no task for a minute."""
    monkeypatch.setattr(two_phase_module, "UNSETTLED", Unsettled())
    monkeypatch.setattr(exactly_once, "runs", exactly_once._Runs())


def test_the_first_task_of_a_run_commits_what_an_earlier_run_has_decided(
    broker: MemoryBroker,
) -> None:
    decided_by(broker, OTHER_RUN)
    found = guarantee(broker)
    for partition in range(2):
        write(found, Attempt(partition, 0, "q", RUN, 7), "a")
    assert states(broker)[f"pykafka-q.{OTHER_RUN}.3.0"] == "CompleteCommit"
    assert states(broker)[f"pykafka-q.{RUN}.0.0"] == "Ongoing"
    in_tasks = [each for each in broker.requests(OffsetFetchRequest) if not each.require_stable]
    assert len(in_tasks) == 2  # One for each run.


def test_a_new_process_tells_what_its_own_run_has_lost_before_it_uses_the_ids(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's code has swallowed the error of micro-batch 7. Later the ids would hide the loss."""
    lost = decided_by(broker, RUN)
    with KafkaClient(guarantee(broker).config.client) as client:
        coordinator = BlockingCoordinator(client, lost.transactional_id)
        coordinator.end(lost.producer, commit=False)
    forget_all(monkeypatch)
    for _ in range(2):  # Spark tries a task again, maybe in the same process.
        with pytest.raises(DecidedRowsLostError, match="aborted 1: task 3") as raised:
            write(guarantee(broker), replace(IN_STREAM, batch_id=8), "b")
        assert not raised.value.runs_again
    assert states(broker)[lost.transactional_id] == "CompleteAbort"


def test_a_process_looks_again_if_its_last_task_was_long_ago(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's process may be new though that of the tasks is not."""
    now_seconds = 1_000.0
    clock = SimpleNamespace(monotonic=lambda: now_seconds)
    monkeypatch.setattr(exactly_once, "time", clock)
    found = guarantee(broker)
    for pause_seconds, looks in ((0, 1), (29, 1), (29, 1), (31, 2), (0, 2)):
        now_seconds += pause_seconds
        found.settle(IN_STREAM)
        assert len(broker.requests(OffsetFetchRequest)) == looks


def test_a_new_process_commits_what_its_own_run_has_left_open(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = decided_by(broker, RUN)
    forget_all(monkeypatch)
    write(guarantee(broker), replace(IN_STREAM, batch_id=8), "b")
    assert broker.cluster.transactions[left.transactional_id].state == "Ongoing"  # The next one.
    assert [each.committed for each in broker.requests(EndTxnRequest)][-1]


def test_what_a_task_cannot_commit_is_left_to_the_driver(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    denied = error_named("GROUP_AUTHORIZATION_FAILED")
    broker.control(OffsetFetchRequest, denied, times=1)
    write(guarantee(broker), IN_STREAM, "a")
    assert "left to the driver" in caplog.text
    assert states(broker)[f"{ID}.0"] == "Ongoing"


def test_an_attempt_leaves_its_transaction_to_the_driver(broker: MemoryBroker) -> None:
    found = write(guarantee(broker), IN_STREAM, "a")
    assert found.prepared is not None
    assert found.prepared.transactional_id == f"{ID}.0"
    assert states(broker) == {f"{ID}.0": "Ongoing"}
    transaction = broker.cluster.transactions[f"{ID}.0"]
    assert found.prepared.producer == (transaction.producer_id, transaction.epoch)
    assert transaction.timeout_ms == 60_000


def test_the_ids_begin_with_the_prefix_or_with_what_tells_the_query(broker: MemoryBroker) -> None:
    write(guarantee(broker, transactionalIdPrefix="mine"), IN_STREAM, "a")
    plain = guarantee(broker)
    write(plain, Attempt(1, 2), "a")
    write(guarantee(broker, transactionalIdPrefix="mine"), Attempt(1, 2), "a")
    first, second, third = broker.cluster.transactions
    assert first == f"mine.{RUN}.3.0"
    assert second == f"pykafka-{plain.write_id}.{plain.write_id}.1.2"
    assert third.startswith("mine.") and third.endswith(".1.2") and plain.write_id not in third


def test_two_plain_batches_never_share_an_id() -> None:
    options = parsed(topic="t", deliveryGuarantee="exactly-once")
    assert ExactlyOnce.of(options).write_id != ExactlyOnce.of(options).write_id


def test_the_next_attempt_has_the_same_producer_under_another_id(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    write(found, IN_STREAM, "a")
    write(found, Attempt(4, 0, "q", RUN, 7), "b")
    assert states(broker) == {f"{ID}.0": "Ongoing", f"pykafka-q.{RUN}.4.0": "Ongoing"}
    assert len(broker.requests(ProduceRequest)) == 2
    assert len(kept()) == 1


def test_no_attempt_begins_under_an_id_where_another_has_not_ended(broker: MemoryBroker) -> None:
    """A repeated stage counts attempts from 0. Its first id would abort the winning attempt."""
    found = guarantee(broker)
    won = write(found, IN_STREAM, "a")
    again = write(found, IN_STREAM, "a")
    assert won.prepared is not None and again.prepared is not None
    assert again.prepared.transactional_id == f"{ID}.1000"
    assert states(broker) == {f"{ID}.0": "Ongoing", f"{ID}.1000": "Ongoing"}
    assert broker.cluster.transactions[f"{ID}.0"].epoch == won.prepared.producer.epoch


def test_an_id_whose_transaction_has_ended_is_used_again(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    write(found, IN_STREAM, "a")
    transaction = broker.cluster.transactions[f"{ID}.0"]
    transaction.end(broker.cluster, commit=True)
    write(found, IN_STREAM, "a")
    assert list(states(broker)) == [f"{ID}.0"]
    assert transaction.epoch == 1


def test_an_attempt_that_finds_no_id_says_so(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_TRIES", 2)
    found = guarantee(broker)
    write(found, IN_STREAM, "a")
    write(found, IN_STREAM, "a")
    with pytest.raises(TransactionOpenError, match=rf"{ID}\.1000"):
        found.begin(IN_STREAM)


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        (Attempt(0, 0, "q", "mine", 7), "'mine', where .* 'setJobGroup'"),
        (Attempt(0, 0, "q", None, 7), "job group is None"),
        (Attempt(0, 0, "q", RUN, None), "the query is q, and the micro-batch None"),
        (Attempt(0, 0, None, None, 7), "the query is None, and the micro-batch 7"),
    ],
)
def test_a_micro_batch_that_is_not_known_is_not_written(attempt: Attempt, said: str) -> None:
    """A replay would write the rows twice, or would abort the decided transactions."""
    found = guarantee()
    with pytest.raises(UnknownBatchError, match=said):
        found.settle(attempt)
    with pytest.raises(UnknownBatchError, match=said):
        found.commit([Written(attempt, 0, 0)], attempt.batch_id)


def test_a_transaction_is_aborted_with_its_attempt(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    producer = found.begin(IN_STREAM)
    producer.send_columns("t", values("a"))
    producer.flush(30)
    found.give_up(producer)
    assert states(broker) == {f"{ID}.0": "CompleteAbort"}
    assert not kept()


def test_what_fails_at_the_very_end_is_aborted_too(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    producer = found.begin(IN_STREAM)
    producer.send_columns("t", values("a"))
    producer.flush(30)

    def refuse() -> PreparedTransaction:
        raise KafkaTimeoutError("not written")

    producer.prepare_transaction = refuse  # type: ignore[method-assign]
    with pytest.raises(KafkaTimeoutError, match="not written"):
        found.end(producer, Written(IN_STREAM, 1, 1, "t"))
    assert states(broker) == {f"{ID}.0": "CompleteAbort"}
    assert not kept()


def test_giving_up_is_bounded_where_brokers_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactly_once, "_LAST_WORDS_SECONDS", 0.01)
    called, over = threading.Event(), threading.Event()
    calls: list[float | None] = []

    class Stuck:
        def abort_transaction(self) -> None:
            called.set()
            over.wait(60)
            raise RuntimeError("closed meanwhile")

        def close(self, timeout_seconds: float | None = None) -> None:
            calls.append(timeout_seconds)

    guarantee().give_up(Stuck())  # type: ignore[arg-type]  # a fake
    assert called.wait(60)
    assert calls == [0]
    over.set()
    for thread in threading.enumerate():
        if thread.name == "aborting":
            thread.join(60)  # The thread raises nothing.


def test_a_producer_that_could_not_begin_is_not_kept(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    write(found, IN_STREAM, "a")
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    answer = InitProducerIdResponse(0, denied.code, -1, -1)
    broker.control(InitProducerIdRequest, answer, times=1)
    with pytest.raises(BrokerError, match=denied.name):
        found.begin(Attempt(4, 0, "q", RUN, 7))
    assert not kept()
    write(found, Attempt(4, 0, "q", RUN, 7), "b")


def test_brokers_are_asked_once_how_long_a_transaction_may_be_open(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    def chosen(_: KafkaClient, given_ms: int | None) -> int:
        asked.append(given_ms)
        return given_ms or 60_000

    monkeypatch.setattr(exactly_once, "chosen_timeout_ms", chosen)
    found = guarantee(broker)
    for partition in range(3):
        write(found, Attempt(partition, 0, "q", RUN, 7), "a")
    assert asked == [None]
    given = guarantee(broker, **{"kafka.transaction.timeout.ms": "5000"})
    write(given, Attempt(4, 0, "q", RUN, 7), "a")
    assert asked == [None, 5_000]
    assert broker.cluster.transactions[f"pykafka-q.{RUN}.4.0"].timeout_ms == 5_000


def test_brokers_that_allow_less_by_now_are_asked_again(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = [900_001, 900_000]  # The in-memory broker has the usual maximum.
    monkeypatch.setattr(exactly_once, "chosen_timeout_ms", lambda *_: allowed.pop(0))
    found = guarantee(broker)
    with pytest.raises(ConfigurationError, match=r"'kafka\.transaction\.timeout\.ms'"):
        found.begin(IN_STREAM)
    write(found, IN_STREAM, "a")
    assert not allowed


def test_an_attempt_that_was_fenced_fails(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    producer = found.begin(IN_STREAM)
    broker.cluster.transactions[f"{ID}.0"].epoch += 1
    producer.send_columns("t", values("a"))
    producer.flush(30)
    with pytest.raises(BrokerError):
        found.end(producer, Written(IN_STREAM, 1, 1, "t"))
    assert len(broker.requests(AddPartitionsToTxnRequest)) == 1
    assert not broker.requests(EndTxnRequest)
    assert not kept()


# -- on the driver -------------------------------------------------------------------------------


@dataclass
class FakeCommit:
    """Stand-in for the commit of a micro-batch. It records its calls."""

    calls: list[Any] = field(default_factory=list)
    fails: Exception | None = None
    closed: int = 0

    def _call(self, *call: Any) -> None:
        self.calls.append(call)
        if self.fails:
            raise self.fails

    contents: list[Content | None] = field(default_factory=list)

    def commit(
        self, batch: BatchId, winners: Any, where: TopicPartition | None, content: Content | None
    ) -> None:
        self.contents.append(content)
        self._call("commit", batch, winners, where)

    def abort(self, batch: BatchId, attempts: Any, where: TopicPartition | None) -> None:
        self._call("abort", batch, attempts, where)

    def end_all(self, transactions: Any) -> None:
        self._call("end all", transactions)

    def abort_all(self, transactions: Any) -> None:
        self._call("abort all", transactions)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, FakeCommit]]:
    """Fake commits that the driver made, each with its prefix."""
    made: list[tuple[str, FakeCommit]] = []

    def make(key: Any) -> FakeCommit:
        made.append((key.names.prefix, FakeCommit()))
        return made[-1][1]

    monkeypatch.setattr(exactly_once, "kept_commits", Kept(make, FakeCommit.close))
    return made


PLAIN = Written(Attempt(0, 0), 1, 1, "t", TRANSACTION)
EMPTY = Written(Attempt(1, 0, "q", RUN, 7), 0, 0)


def test_a_micro_batch_is_decided(made: list[tuple[str, FakeCommit]]) -> None:
    other = PreparedTransaction("x", ProducerId(5, 6))
    messages = [EMPTY, WRITTEN, Written(IN_STREAM, 2, 5, "s", other)]
    guarantee().commit(messages, 7)
    ((prefix, found),) = made
    assert prefix == "pykafka-q"
    assert found.calls == [("commit", BATCH, [TRANSACTION, other], TopicPartition("s", 0))]
    assert found.contents == [Content(3, 6)]


def test_the_fingerprint_of_a_micro_batch_is_the_sum_of_its_tasks(
    made: list[tuple[str, FakeCommit]],
) -> None:
    messages = [EMPTY, *(replace(WRITTEN, fingerprint=each) for each in (7, (1 << 63) - 1))]
    guarantee(replayCheck="contents").commit(messages, 7)
    assert made[0][1].contents == [Content(2, 2, 6)]


def test_the_micro_batch_of_a_batch_write_in_foreach_batch_is_decided_as_well(
    made: list[tuple[str, FakeCommit]],
) -> None:
    guarantee(transactionalIdPrefix="mine").commit([WRITTEN], None)
    ((prefix, found),) = made
    assert prefix == "mine"
    assert found.calls == [("commit", BATCH, [TRANSACTION], TopicPartition("t", 0))]


def test_a_micro_batch_without_rows_is_ended_if_it_was_decided(
    made: list[tuple[str, FakeCommit]],
) -> None:
    guarantee().commit([EMPTY], 7)
    assert made[0][1].calls == [("commit", BATCH, [], None)]


def test_a_plain_batch_is_ended_and_nothing_decided(made: list[tuple[str, FakeCommit]]) -> None:
    guarantee().commit([PLAIN], None)
    assert made[0][1].calls == [("end all", [TRANSACTION])]


def test_without_a_row_a_plain_batch_asks_nothing(made: list[tuple[str, FakeCommit]]) -> None:
    guarantee().commit([Written(Attempt(0, 0), 0, 0)], None)
    assert not made


def test_what_is_aborted_is_all_of_the_run(
    broker: MemoryBroker, made: list[tuple[str, FakeCommit]]
) -> None:
    """Abort also the rows of a task that Spark gave up and that sent no message."""
    found = guarantee(broker)
    told = write(found, IN_STREAM, "a")
    untold = write(found, Attempt(4, 1, "q", RUN, 7), "a")
    for other in (Attempt(4, 1, "q", OTHER_RUN, 7), Attempt(4, 1, "r", RUN, 7), Attempt(0, 0)):
        write(found, other, "a")
    ended = write(found, Attempt(5, 0, "q", RUN, 7), "a")
    assert ended.prepared is not None
    broker.cluster.transactions[ended.prepared.transactional_id].end(broker.cluster, commit=True)
    found.abort([None, told], 7)
    ((prefix, commit),) = made
    assert prefix == "pykafka-q"
    # A task has sent no message, so what the others have told is not decided.
    assert commit.calls == [
        ("abort all", [told.prepared]),
        ("abort", BATCH, [untold.prepared], TopicPartition("t", 0)),
    ]


def test_what_all_tasks_have_told_may_be_decided(
    broker: MemoryBroker, made: list[tuple[str, FakeCommit]]
) -> None:
    found = guarantee(broker)
    told = write(found, IN_STREAM, "a")
    found.abort([told], 7)
    assert made[0][1].calls == [("abort", BATCH, [told.prepared], TopicPartition("t", 0))]


def test_of_a_plain_batch_all_is_aborted_though_no_task_has_told(
    broker: MemoryBroker, made: list[tuple[str, FakeCommit]]
) -> None:
    found, other = guarantee(broker), guarantee(broker)
    untold = write(found, Attempt(0, 0), "a")
    write(other, Attempt(0, 0), "a")
    found.abort([None, None], None)
    assert made[0][1].calls == [("abort all", [untold.prepared])]


def test_rows_that_a_task_writes_after_the_abort_are_aborted_by_the_task(
    broker: MemoryBroker, made: list[tuple[str, FakeCommit]]
) -> None:
    """The driver found no open transaction, since the task had not sent a record yet."""
    found = guarantee(broker)
    attempt = Attempt(0, 0)
    producer = found.begin(attempt)
    found.abort([None], None)
    assert not made
    producer.send_columns("t", values("a"))
    producer.flush(30)
    assert "Ongoing" in states(broker).values()
    with pytest.raises(WriteAbortedError, match="partition=0"):
        found.end(producer, Written(attempt, 1, 1, "t"))
    assert set(states(broker).values()) == {"Empty", "CompleteAbort"}
    write(guarantee(broker), attempt, "a")  # Another write goes on.


def test_good_rows_stay_where_the_mark_cannot_be_looked_up(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    producer = found.begin(Attempt(0, 0))
    producer.send_columns("t", values("a"))
    producer.flush(30)
    broker.control(DescribeTransactionsRequest, error_named("UNKNOWN_SERVER_ERROR"), times=1)
    written = found.end(producer, Written(Attempt(0, 0), 1, 1, "t"))
    assert written.prepared is not None
    assert "Ongoing" in states(broker).values()


def test_only_tasks_of_a_plain_batch_ask_whether_it_is_aborted(broker: MemoryBroker) -> None:
    """A stream's next run aborts what the last one has left. A micro-batch must be quick."""
    asked = []
    for attempt in (IN_STREAM, Attempt(0, 0)):
        before = len(broker.requests(DescribeTransactionsRequest))
        write(guarantee(broker), attempt, "a")
        asked.append(len(broker.requests(DescribeTransactionsRequest)) - before)
    assert asked == [1, 2]


def test_an_abort_whose_mark_is_refused_aborts_all_the_same(
    broker: MemoryBroker, made: list[tuple[str, FakeCommit]]
) -> None:
    found = guarantee(broker)
    untold = write(found, Attempt(0, 0), "a")
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    broker.control(InitProducerIdRequest, InitProducerIdResponse(0, denied.code, -1, -1), times=1)
    found.abort([None], None)
    assert made[0][1].calls == [("abort all", [untold.prepared])]


def test_of_a_stream_of_which_no_task_has_told_nothing_is_known(
    made: list[tuple[str, FakeCommit]],
) -> None:
    guarantee().abort([None, None], 7)
    assert not made


def test_what_has_told_is_aborted_though_brokers_do_not_say_what_is_open(
    made: list[tuple[str, FakeCommit]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object, **__: object) -> None:
        raise KafkaTimeoutError("no broker")

    monkeypatch.setattr(endings, "list_transactions", gone)
    guarantee().abort([None, WRITTEN], 7)
    assert made[0][1].calls == [("abort all", [TRANSACTION])]


def test_connections_are_kept_for_the_next_micro_batch(made: list[tuple[str, FakeCommit]]) -> None:
    for batch_id in range(3):
        guarantee().commit([WRITTEN], batch_id)
    ((_, found),) = made
    assert len(found.calls) == 3
    assert not found.closed


def test_connections_are_closed_after_an_error(made: list[tuple[str, FakeCommit]]) -> None:
    guarantee().commit([WRITTEN], 7)
    made[0][1].fails = KafkaTimeoutError("no coordinator")
    with pytest.raises(KafkaTimeoutError):
        guarantee().commit([WRITTEN], 8)
    assert made[0][1].closed == 1
    guarantee().commit([WRITTEN], 8)
    assert len(made) == 2
