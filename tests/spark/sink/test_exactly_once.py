"""The steps of an exactly-once writer in a task, and its steps on the driver."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    error_named,
)
from spark_kafka_source.exactly_once import endings
from spark_kafka_source.exactly_once.checks import Checkpoint
from spark_kafka_source.exactly_once.committing import Commits
from spark_kafka_source.exactly_once.decision import BatchId, Content, DecisionId, Seen
from spark_kafka_source.exactly_once.driver import PreparedWrite
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.producer import (
    Generation,
    KafkaProducer,
    PreparedTransaction,
    ProducerId,
)
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.sink import exactly_once
from spark_kafka_source.spark.sink import guarantee as guarantees
from spark_kafka_source.spark.sink.exactly_once import (
    BegunTransaction,
    ExactlyOnce,
    UnknownBatchError,
    WriteAbortedError,
    worker_of,
)
from spark_kafka_source.spark.sink.guarantee import Attempt, Written
from spark_kafka_source.spark.sink.writer import KafkaWriter
from spark_kafka_source.testing.memory import Action, Answer, MemoryBroker
from tests.exactly_once.steps import Step, SteppedRunner
from tests.forking import forking, in_child
from tests.producer.writing import committed_values
from tests.spark.settings import shipped
from tests.spark.sink.settings import parsed, values
from tests.spark.test_outage import OF_CLIENTS, outage

RUN, OTHER_RUN = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
THIRD_RUN = "33333333-3333-4333-8333-333333333333"
IN_STREAM = Attempt(3, 0, "q", RUN, 7)
SEEN = Seen(ProducerId(7, 0))
TRANSACTION = PreparedTransaction(f"pykafka-q.{RUN}.3.0", ProducerId(1000, 0))
WRITTEN = Written(IN_STREAM, 1, 1, TRANSACTION, seen=SEEN)
BATCH = BatchId("q", RUN, 7)
SECOND_LEVEL = {"transaction.version": 2}


@pytest.fixture(params=Generation, ids=lambda each: each.name.lower())
def broker(request: pytest.FixtureRequest) -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        broker.cluster.create_topic("t")
        if request.param is Generation.SECOND:
            broker.cluster.features.update(SECOND_LEVEL)
        yield broker


@pytest.fixture
def second(broker: MemoryBroker) -> MemoryBroker:
    """A broker of the second generation."""
    if not broker.cluster.features:
        pytest.skip("of the second generation only")
    return broker


@pytest.fixture(autouse=True)
def fresh_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be a new process in each test."""
    closing: list[Any] = []

    def making(make: Any) -> Any:
        def made(key: Any) -> Any:
            closing.append(make(key))
            return closing[-1]

        return made

    producers = Pool(making(KafkaProducer.of), lambda each: each.close(0))
    clients = Pool(making(KafkaClient), lambda each: each.close())
    for module in (exactly_once, guarantees):
        monkeypatch.setattr(module, "kept_producers", producers)
    monkeypatch.setattr(exactly_once, "kept_clients", clients)
    commits = Pool(making(exactly_once._begin_commits), lambda each: each.close())
    monkeypatch.setattr(exactly_once, "kept_commits", commits)
    be_a_new_process()
    yield
    for each in closing:
        each.close()


def be_a_new_process() -> None:
    """Know nothing. The former process is still there."""
    worker_of.cache_clear()


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
    options = parsed(topic="t", deliveryGuarantee="exactly-once")
    found.settle(attempt)
    writer = KafkaWriter(options, Any, found)  # type: ignore[arg-type]  # no columns are needed
    return shipped(writer._write(attempt, values(*texts), iter(())))


def begin(found: ExactlyOnce, attempt: Attempt, text: str = "a") -> BegunTransaction:
    """Write a row, and do not end the attempt."""
    found.settle(attempt)
    begun = found.begin(attempt)
    begun.producer.send_columns("t", values(text))
    begun.producer.flush(30)
    return begun


def prepared(written: Written) -> PreparedTransaction:
    assert written.prepared is not None
    return written.prepared


def commit(broker: MemoryBroker, *written: Written) -> None:
    guarantee(broker).commit(written, written[0].attempt.batch_id)


def states(broker: MemoryBroker) -> dict[str, str]:
    return {name: each.state for name, each in broker.cluster.transactions.items()}


def state(broker: MemoryBroker, written: Written) -> str:
    return states(broker)[prepared(written).transactional_id]


# -- in a task -----------------------------------------------------------------------------------


def decided_by(broker: MemoryBroker, run_id: str) -> Written:
    """Decide micro-batch 7, and die before its transaction is committed."""
    attempt = replace(IN_STREAM, run_id=run_id)
    written = write(guarantee(broker), attempt, "a")

    def die(step: Step) -> None:
        if step is Step.DECIDED:
            raise KeyboardInterrupt

    names = Names("pykafka-q")
    client = KafkaClient(guarantee(broker).config.client)
    commits = Commits(client, names, written.generation)
    commits._runner = SteppedRunner(client, names, written.generation, die)
    batch = replace(BATCH, run_id=run_id)
    prepared_write = PreparedWrite(batch, (prepared(written),), frozenset({written.seen}))
    with pytest.raises(KeyboardInterrupt):
        commits.commit(prepared_write)
    commits.close()
    return written


def test_the_first_task_of_a_run_commits_what_an_earlier_run_has_decided(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = decided_by(broker, OTHER_RUN)
    be_a_new_process()
    found = guarantee(broker)
    written = [write(found, Attempt(partition, 0, "q", RUN, 7), "a") for partition in range(2)]
    assert state(broker, decided) == "CompleteCommit"
    assert {state(broker, each) for each in written} == {"Ongoing"}
    in_tasks = [each for each in broker.requests(OffsetFetchRequest) if not each.require_stable]
    assert len(in_tasks) == 2  # One for each run.


def test_new_processes_outlast_brokers_that_are_away(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first contact ends after 1 s, and a call of rows or decisions after 30 s."""
    found = guarantee(broker, **OF_CLIENTS, **{"kafka.delivery.timeout.ms": "30000"})
    with outage(broker):
        written = write(found, IN_STREAM, "a")
    be_a_new_process()
    with outage(broker):
        found.commit([written], 7)
    assert committed_values(broker.cluster.topics["t"].logs[0]) == [b"a"]


def test_a_task_tells_what_its_process_saw(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = guarantee(broker)
    first = write(found, IN_STREAM, "a")
    assert first.seen == Seen()
    found.commit([first], 7)
    assert write(found, replace(IN_STREAM, batch_id=8), "b").seen == first.seen
    be_a_new_process()
    other = write(found, replace(IN_STREAM, batch_id=8), "b")
    control = broker.cluster.transactions["pykafka-q.control"]
    assert other.seen.control == (control.producer_id, control.epoch)
    assert other.seen.decisions == {DecisionId(BATCH, 0, "t")}
    is_second = bool(broker.cluster.features)
    assert other.generation is (Generation.SECOND if is_second else Generation.FIRST)


def test_what_a_task_cannot_commit_is_left_to_the_driver(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    decided_by(broker, OTHER_RUN)
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    broker.control(EndTxnRequest, denied, times=1)
    written = write(guarantee(broker), IN_STREAM, "a")
    assert "which the driver will do" in caplog.text
    assert state(broker, written) == "Ongoing"


def test_an_attempt_leaves_its_transaction_to_the_driver(broker: MemoryBroker) -> None:
    found = prepared(write(guarantee(broker), IN_STREAM, "a"))
    assert found.transactional_id.startswith(f"pykafka-q.{RUN}.")
    assert states(broker) == {found.transactional_id: "Ongoing"}
    transaction = broker.cluster.transactions[found.transactional_id]
    assert found.producer == (transaction.producer_id, transaction.epoch)
    assert found.partition_count == 1
    assert transaction.timeout_ms == 900_000


def test_the_ids_begin_with_the_prefix_or_with_what_tells_the_query(broker: MemoryBroker) -> None:
    write(guarantee(broker, transactionalIdPrefix="mine"), IN_STREAM, "a")
    plain = guarantee(broker)
    write(plain, Attempt(1, 2), "a")
    write(guarantee(broker, transactionalIdPrefix="mine"), Attempt(1, 2), "a")
    first, second, third = broker.cluster.transactions
    assert first.startswith(f"mine.{RUN}.")
    assert second.startswith(f"pykafka-{plain.write_id}.{plain.write_id}.")
    assert third.startswith("mine.") and plain.write_id not in third


def test_two_plain_batches_never_share_an_id() -> None:
    options = parsed(topic="t", deliveryGuarantee="exactly-once")
    assert ExactlyOnce.of(options).write_id != ExactlyOnce.of(options).write_id


def test_the_next_attempt_has_the_same_producer_under_another_id(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    write(found, IN_STREAM, "a")
    write(found, Attempt(4, 0, "q", RUN, 7), "b")
    assert list(states(broker).values()) == ["Ongoing", "Ongoing"]
    assert len(broker.requests(ProduceRequest)) == 2
    assert len(kept()) == 1


def test_no_attempt_begins_under_an_id_where_another_has_not_ended(broker: MemoryBroker) -> None:
    """Spark may run an attempt twice, or a speculative one beside it."""
    found = guarantee(broker)
    won, again = write(found, IN_STREAM, "a"), write(found, IN_STREAM, "a")
    assert prepared(won).transactional_id != prepared(again).transactional_id
    assert {state(broker, each) for each in (won, again)} == {"Ongoing"}


def test_two_processes_never_share_an_id(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = guarantee(broker)
    for _ in range(3):
        be_a_new_process()
        write(found, IN_STREAM, "a")
    assert list(states(broker).values()) == ["Ongoing"] * 3


@forking
def test_a_child_of_a_fork_never_has_an_id_of_its_parent(broker: MemoryBroker) -> None:
    """Under one id, producer and sequence brokers would drop the rows of one of the two."""
    found, following = guarantee(broker), replace(IN_STREAM, batch_id=8)
    commit(broker, write(found, IN_STREAM, "a"))
    of_child = in_child(lambda: write(found, following, "b"))
    of_parent = write(found, following, "c")
    assert prepared(of_child).transactional_id != prepared(of_parent).transactional_id
    commit(broker, of_child, of_parent)
    assert committed_values(broker.cluster.topics["t"].logs[0]) == [b"a", b"b", b"c"]


def test_after_an_error_the_next_task_begins_anew(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    commit(broker, write(found, IN_STREAM, "a"))
    following = replace(IN_STREAM, batch_id=8)
    begin(found, following).give_up()
    commit(broker, write(found, following, "b"))
    commit(broker, write(found, replace(IN_STREAM, batch_id=9), "c"))
    assert len(states(broker)) == 3  # One is aborted, and never used again.


def test_an_id_whose_transaction_has_ended_is_used_again(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    for batch_id in range(7, 10):
        commit(broker, write(found, replace(IN_STREAM, batch_id=batch_id), "a"))
    assert len(states(broker)) == 2  # And that of the driver.
    asked = [each.transactional_id for each in broker.requests(InitProducerIdRequest)]
    in_tasks = [each for each in asked if not str(each).endswith(".control")]
    assert len(in_tasks) == (1 if broker.cluster.features else 3)


def test_what_a_micro_batch_of_16_tasks_asks(broker: MemoryBroker) -> None:
    """The third one of a run: nothing has to be looked up any more."""
    found = guarantee(broker)
    for batch_id in range(3):
        before = len(broker.seen)
        attempts = [replace(IN_STREAM, partition=each, batch_id=batch_id) for each in range(16)]
        commit(broker, *(write(found, each, "a") for each in attempts))
    asked = Counter(type(each.request) for each in broker.seen[before:])
    del asked[ApiVersionsRequest]  # Of new connections.
    driver: dict[type[Request[Any]], int] = {
        MetadataRequest: 2,  # To list the brokers, and for the topic's id.
        ListTransactionsRequest: 1,
        TxnOffsetCommitRequest: 1,
        EndTxnRequest: 17,
    }
    if broker.cluster.features:
        assert asked == {**driver, ProduceRequest: 16, DescribeTransactionsRequest: 1}
        return
    assert asked == {
        **driver,
        ProduceRequest: 16,
        AddPartitionsToTxnRequest: 16,
        AddOffsetsToTxnRequest: 1,
        InitProducerIdRequest: 17,
        DescribeTransactionsRequest: 16 + 2,
    }


def test_an_id_whose_transaction_is_open_is_refused_and_left(second: MemoryBroker) -> None:
    """Code in foreachBatch has swallowed an error, and the earlier micro-batch is open."""
    found = guarantee(second)
    first = write(found, IN_STREAM, "a")
    following = write(found, replace(IN_STREAM, batch_id=8), "b")
    assert prepared(first).transactional_id != prepared(following).transactional_id
    assert {state(second, each) for each in (first, following)} == {"Ongoing"}
    assert prepared(following).producer.epoch == 0
    assert len(second.requests(ProduceRequest)) == 3
    commit(second, following)
    log = second.cluster.topics["t"].logs[0]
    assert committed_values(log) == [b"b"]  # The first one is aborted: it is not decided.
    assert state(second, following) == "CompleteCommit"


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
    begin(found, IN_STREAM).give_up()
    assert list(states(broker).values()) == ["CompleteAbort"]
    assert not kept()


def test_what_fails_at_the_very_end_is_aborted_too(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: KafkaProducer) -> PreparedTransaction:
        raise KafkaTimeoutError("not written")

    monkeypatch.setattr(KafkaProducer, "prepare_transaction", refuse)
    with pytest.raises(KafkaTimeoutError, match="not written"):
        write(guarantee(broker), IN_STREAM, "a")
    assert list(states(broker).values()) == ["CompleteAbort"]
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

    stuck: Any = Stuck()
    BegunTransaction(guarantee().config, stuck, *[None] * 3).give_up()  # type: ignore[arg-type]
    assert called.wait(60)
    assert calls == [0]
    over.set()
    for thread in threading.enumerate():
        if thread.name == "aborting":
            thread.join(60)  # The thread raises nothing.


def test_a_slot_that_could_not_be_taken_is_an_error_of_the_task(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    write(found, IN_STREAM, "a")
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    answer = InitProducerIdResponse(0, denied.code, -1, -1)
    broker.control(InitProducerIdRequest, answer, times=1)
    with pytest.raises(BrokerError, match=denied.name):
        found.begin(Attempt(4, 0, "q", RUN, 7))
    write(found, Attempt(4, 0, "q", RUN, 7), "b")


def test_a_transaction_is_open_as_long_as_is_said(broker: MemoryBroker) -> None:
    for given_ms, timeout_ms in ((None, 900_000), ("5000", 5_000)):
        given = {} if given_ms is None else {"kafka.transaction.timeout.ms": given_ms}
        be_a_new_process()
        written = write(guarantee(broker, **given), Attempt(4, 0, "q", RUN, 7), "a")
        transaction = broker.cluster.transactions[prepared(written).transactional_id]
        assert transaction.timeout_ms == timeout_ms


def test_a_time_that_brokers_refuse_is_named(broker: MemoryBroker) -> None:
    found = guarantee(broker, **{"kafka.transaction.timeout.ms": "900001"})
    with pytest.raises(ConfigurationError, match=r"'kafka\.transaction\.timeout\.ms'.* 900001"):
        found.begin(IN_STREAM)


def test_an_attempt_that_was_fenced_fails(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    found.settle(IN_STREAM)
    begun = found.begin(IN_STREAM)
    broker.cluster.transactions[begun.slot.transactional_id].epoch += 1
    begun.producer.send_columns("t", values("a"))
    begun.producer.flush(30)
    with pytest.raises(KafkaError):
        begun.end(Written(IN_STREAM, 1, 1))
    assert list(states(broker).values()) == ["Empty"]
    assert not kept()


# -- on the driver -------------------------------------------------------------------------------


@dataclass
class FakeCommit:
    """Stand-in for the commit of a micro-batch. It records its calls."""

    calls: list[Any] = field(default_factory=list)

    def commit(self, prepared_write: PreparedWrite) -> None:
        self.calls.append(prepared_write)

    def end_all(self, transactions: Any) -> None:
        self.calls.append(("end all", *transactions))

    def close(self) -> None:
        """A pool closes what is idle for long, by a thread of its own."""
        self.calls.append("closed")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, FakeCommit]]:
    """Fake commits that the driver made, each with its prefix."""
    made: list[tuple[str, FakeCommit]] = []

    def make(key: Any) -> FakeCommit:
        made.append((key[0].names.prefix, FakeCommit()))
        return made[-1][1]

    monkeypatch.setattr(exactly_once, "kept_commits", Pool(make, FakeCommit.close))
    return made


PLAIN = Written(Attempt(0, 0), 1, 1, TRANSACTION)
EMPTY = Written(Attempt(1, 0, "q", RUN, 7), 0, 0)


def test_a_micro_batch_is_decided(made: list[tuple[str, FakeCommit]]) -> None:
    other = PreparedTransaction("x", ProducerId(5, 6))
    messages = [EMPTY, WRITTEN, Written(IN_STREAM, 2, 5, other)]
    guarantee(checkpointLocation="file:/c/", checkpointMovedFrom="/b").commit(messages, 7)
    ((prefix, found),) = made
    assert prefix == "pykafka-q"
    both, seen, where = (TRANSACTION, other), frozenset({SEEN, Seen()}), Checkpoint("/c", "/b")
    assert found.calls == [PreparedWrite(BATCH, both, seen, Content(3, 6, 0), "t", where)]


def test_a_write_is_named_by_its_topic_or_by_none(made: list[tuple[str, FakeCommit]]) -> None:
    guarantee(topic=" t ").commit([WRITTEN], 7)
    of_column = parsed(deliveryGuarantee="exactly-once")
    ExactlyOnce.of(of_column).commit([WRITTEN], 7)
    assert [each.write for each in made[0][1].calls] == ["t", ""]


def test_the_fingerprint_of_a_micro_batch_is_the_sum_of_its_tasks(
    made: list[tuple[str, FakeCommit]],
) -> None:
    messages = [EMPTY, *(replace(WRITTEN, fingerprint=each) for each in (7, (1 << 63) - 1))]
    guarantee().commit(messages, 7)
    assert made[0][1].calls[0].content == Content(2, 2, 6)


def test_the_micro_batch_of_a_batch_write_in_foreach_batch_is_decided_as_well(
    made: list[tuple[str, FakeCommit]],
) -> None:
    guarantee(transactionalIdPrefix="mine").commit([WRITTEN], None)
    ((prefix, found),) = made
    assert prefix == "mine"
    assert found.calls[0].batch == BATCH


def test_a_micro_batch_without_rows_is_ended_if_it_was_decided(
    made: list[tuple[str, FakeCommit]],
) -> None:
    guarantee(checkpointLocation="/c").commit([EMPTY], 7)
    nothing = PreparedWrite(BATCH, (), frozenset(), Content(0, 0, 0), "t", Checkpoint("/c"))
    assert made[0][1].calls == [nothing]


def test_a_plain_batch_is_ended_and_nothing_decided(made: list[tuple[str, FakeCommit]]) -> None:
    guarantee().commit([PLAIN], None)
    assert made[0][1].calls == [("end all", TRANSACTION)]


def test_without_a_row_a_plain_batch_ends_nothing(broker: MemoryBroker) -> None:
    guarantee(broker).commit([Written(Attempt(0, 0), 0, 0)], None)
    assert not broker.requests(EndTxnRequest)


@dataclass
class Writes:
    """Open transactions: two of one run, one of another run, and those of others."""

    found: ExactlyOnce
    told: Written
    untold: Written
    other_run: Written
    others: list[Written]


def written_by_many(broker: MemoryBroker) -> Writes:
    found = guarantee(broker)
    told = write(found, IN_STREAM, "a")
    untold = write(found, Attempt(4, 1, "q", RUN, 7), "a")
    other_run = write(found, Attempt(4, 1, "q", OTHER_RUN, 7), "b")
    others = [write(found, other, "a") for other in (Attempt(4, 1, "r", RUN, 7), Attempt(0, 0))]
    return Writes(found, told, untold, other_run, others)


@pytest.mark.parametrize("is_first", [True, False], ids=["the first write", "a later one"])
def test_what_is_aborted_is_all_of_the_run(is_first: bool, broker: MemoryBroker) -> None:
    """Abort also the rows of a task that Spark gave up and that sent no message.

    Those of another run are left alone: its driver may decide.
    """
    if not is_first:
        commit(broker, write(guarantee(broker), replace(IN_STREAM, batch_id=6), "a"))
    writes = written_by_many(broker)
    writes.found.abort([None, writes.told], 7)
    assert {state(broker, each) for each in (writes.told, writes.untold)} == {"CompleteAbort"}
    assert {state(broker, each) for each in (writes.other_run, *writes.others)} == {"Ongoing"}
    commit(broker, writes.other_run)
    assert state(broker, writes.other_run) == "CompleteCommit"


def test_what_is_decided_is_not_aborted(broker: MemoryBroker) -> None:
    """Spark calls `abort` after `commit` has raised."""
    told = decided_by(broker, RUN)
    guarantee(broker).abort([told], 7)
    assert state(broker, told) == "CompleteCommit"


def test_of_a_plain_batch_all_is_aborted_though_no_task_has_told(broker: MemoryBroker) -> None:
    found, other = guarantee(broker), guarantee(broker)
    untold, others = write(found, Attempt(0, 0), "a"), write(other, Attempt(0, 0), "a")
    found.abort([None, None], None)
    assert state(broker, untold) == "CompleteAbort"
    assert state(broker, others) == "Ongoing"


def test_rows_that_a_task_writes_after_the_abort_are_aborted_by_the_task(
    broker: MemoryBroker,
) -> None:
    """The driver found no open transaction, since the task had not sent a record yet."""
    found, attempt = guarantee(broker), Attempt(0, 0)
    begun = found.begin(attempt)
    found.abort([None], None)
    begun.producer.send_columns("t", values("a"))
    begun.producer.flush(30)
    assert "Ongoing" in states(broker).values()
    with pytest.raises(WriteAbortedError):
        begun.end(Written(attempt, 1, 1))
    begun.give_up()
    assert set(states(broker).values()) == {"Empty", "CompleteAbort"}
    write(guarantee(broker), attempt, "a")  # Another write goes on.


def test_only_tasks_of_a_plain_batch_ask_whether_it_is_aborted(broker: MemoryBroker) -> None:
    """A stream's next run aborts what the last one has left. A micro-batch must be quick."""
    asked = []
    for attempt in (IN_STREAM, replace(IN_STREAM, partition=4), Attempt(0, 0)):
        before = len(broker.requests(DescribeTransactionsRequest))
        write(guarantee(broker), attempt, "a")
        asked.append(len(broker.requests(DescribeTransactionsRequest)) - before)
    assert asked == [1, 0, 1]  # The first one is the look of a new process.


def test_an_abort_whose_mark_is_refused_aborts_all_the_same(broker: MemoryBroker) -> None:
    found = guarantee(broker)
    untold = write(found, Attempt(0, 0), "a")
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    broker.control(InitProducerIdRequest, InitProducerIdResponse(0, denied.code, -1, -1), times=1)
    with pytest.raises(BrokerError, match=denied.name):
        found.abort([None], None)
    assert state(broker, untold) == "CompleteAbort"


def test_of_a_stream_of_which_no_task_has_told_nothing_is_known(
    made: list[tuple[str, FakeCommit]],
) -> None:
    guarantee().abort([None, None], 7)
    assert not made


def test_what_has_told_is_aborted_though_brokers_do_not_say_what_is_open(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object, **__: object) -> None:
        raise KafkaTimeoutError("no broker")

    found = guarantee(broker)
    told = write(found, IN_STREAM, "a")
    monkeypatch.setattr(endings, "list_transactions", gone)
    found.abort([None, told], 7)
    assert state(broker, told) == "CompleteAbort"


def test_connections_are_kept_for_the_next_micro_batch(made: list[tuple[str, FakeCommit]]) -> None:
    for batch_id in range(3):
        guarantee().commit([WRITTEN], batch_id)
    ((_, found),) = made
    assert len(found.calls) == 3


def test_after_an_error_a_driver_begins_without_memory(broker: MemoryBroker) -> None:
    """Code in foreachBatch may swallow the error and go on."""
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    answers: dict[int, list[Answer]] = {
        8: [denied],  # The end of the decision.
        10: [Action.HANDLE, denied],  # The end of the one transaction.
    }
    for batch_id in range(7, 12):
        written = write(guarantee(broker), replace(IN_STREAM, batch_id=batch_id), f"{batch_id}")
        for answer in answers.get(batch_id, ()):
            broker.control(EndTxnRequest, answer)
        with pytest.raises(KafkaError) if batch_id in answers else nullcontext():
            commit(broker, written)
    assert committed_values(broker.cluster.topics["t"].logs[0]) == [b"7", b"9", b"10", b"11"]
