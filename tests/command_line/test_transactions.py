"""`transactions`: open transactions, their owners, and their ends, in both output forms."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.command_line.main import main
from spark_kafka_source.command_line.transactions import _span
from spark_kafka_source.errors import KafkaError, error_named
from spark_kafka_source.exactly_once.errors import LateAbortError
from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.protocol.messages.describe_producers import DescribeProducersRequest
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.protocol.messages.transactions import EndTxnRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.testing.memory.cluster import Pending
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.conftest import Trial, in_memory_trial, transaction_of
from tests.exactly_once.dying import decided
from tests.exactly_once.query import Query, Run
from tests.exactly_once.steps import Step
from tests.producer.transactional import begin_as

Command = Callable[..., int]
NOW_MS = 1_777_896_000_000


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryBroker]:
    monkeypatch.setattr("time.time_ns", lambda: (NOW_MS + 61_000) * 1_000_000)
    with MemoryBroker(2) as broker:
        broker.cluster.now_ms = lambda: NOW_MS
        yield broker


@pytest.fixture
def trial(broker: MemoryBroker) -> Trial:
    trial = in_memory_trial(broker, "orders")
    trial.query.prefix, trial.query.query_id = "billing", "q"
    trial.query.timeout_ms = 900_000
    return trial


@pytest.fixture
def query(trial: Trial) -> Query:
    return trial.query


@pytest.fixture
def run(broker: MemoryBroker) -> Command:
    def run(*words: str) -> int:
        return main(["transactions", *words, "--bootstrap-servers", str(broker.address())])

    return run


@pytest.fixture
def documents(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[Any]]:
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


Documents = Callable[[], list[Any]]
Shown = pytest.CaptureFixture[str]


def started(query: Query) -> Run:
    """Return a run whose ids end with 0.0, 0.1 and so on."""
    run = Run(query, "r")
    run.look(0)._slots._numbers = iter(range(1_000))
    return run


def naming(prepared: PreparedTransaction) -> list[str]:
    producer_id, epoch = map(str, prepared.producer)
    return [prepared.transactional_id, "--producer-id", producer_id, "--epoch", epoch]


# -- list ------------------------------------------------------------------------------------------


def test_where_none_is_open_it_says_so(query: Query, run: Command, capsys: Shown) -> None:
    of_query = started(query)
    of_query.commit(0, of_query.write(0))
    assert run("list") == 0
    assert capsys.readouterr() == ("", "None is open\n")
    assert run("list", "--state", "PrepareAbort") == 0
    assert capsys.readouterr() == ("", "No such transaction\n")


def test_what_is_open_and_whose_it_is(query: Query, run: Command, capsys: Shown) -> None:
    of_query = started(query)
    decided(of_query)
    of_query.write(1, 1)
    assert run("list") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == [
        *("TRANSACTION", "STATE", "PRODUCER", "EPOCH", "OPEN", "LEFT"),
        *("QUERY", "BATCH", "TASK", "ATTEMPT", "NOTE"),
    ]
    assert [" ".join(line.split()) for line in lines] == [
        "billing.r.0.0 Ongoing 1000 0 1m01s 13m59s q 0 0 0 "
        "decided: start the query, which commits it, or 'finish' it",
        "billing.r.0.1 Ongoing 1001 0 1m01s 13m59s q 0 0 1 "
        "decided: start the query, which commits it, or 'finish' it",
        "billing.r.0.2 Ongoing 1003 0 1m01s 13m59s q - 0 2 not decided",
    ]


def test_all_that_is_known_for_programs(query: Query, run: Command, documents: Documents) -> None:
    started(query).write(0, 1)
    other = Query(query.servers, query.topic, query.partitions, "pykafka-1234").start()
    other.write(0, 1)
    assert run("list", "--json", "--prefix", "billing") == 0
    (found,) = documents()
    assert found == {
        "transaction": "billing.r.0.0",
        "state": "Ongoing",
        "producer": 1000,
        "epoch": 0,
        "started_ms": NOW_MS,
        "started": "2026-05-04T12:00:00Z",
        "open": "1m01s",
        "open_ms": 61_000,
        "timeout_ms": 900_000,
        "left": "13m59s",
        "left_ms": 839_000,
        "coordinator": 0,
        "partitions": [
            {"topic": "orders", "partition": 0},
            {"topic": "orders", "partition": 1},
            {"topic": "orders", "partition": 2},
        ],
        "query": None,
        "run": "r",
        "batch": None,
        "last_batch": None,
        "task": 0,
        "attempt": 0,
        "decided": False,
        "note": "not decided",
    }
    assert run("list", "--json", "--prefix", "pykafka-1234") == 0
    assert [each["query"] for each in documents()] == ["1234"]


def test_only_transactions_in_the_given_states_are_listed(
    query: Query, run: Command, documents: Documents
) -> None:
    of_query = started(query)
    of_query.commit(0, of_query.write(0))
    assert run("list", "--json", "--state", "CompleteCommit", "--state", "CompleteAbort") == 0
    found = documents()
    assert [each["transaction"] for each in found] == [
        "billing.control",
        "billing.r.0.0",
        "billing.r.0.1",
    ]
    assert [each["decided"] for each in found] == [None, True, True]
    assert {each["open"] for each in found} == {None}


def test_a_broker_that_does_not_answer_is_told(
    broker: MemoryBroker, query: Query, run: Command, capsys: Shown
) -> None:
    started(query).write(0, 1)
    broker.control(ListTransactionsRequest, error_named("UNKNOWN_SERVER_ERROR"), node_id=1)
    assert run("list") == 1
    shown = capsys.readouterr()
    assert "billing.r.0.0" in shown.out
    assert shown.err.startswith(f"Broker 1 ({broker.address(1)}) does not list its own: ")


def test_a_decision_that_is_being_made_is_not_called_none(
    broker: MemoryBroker, query: Query, run: Command, documents: Documents
) -> None:
    of_query = started(query)
    of_query.commit(0, of_query.write(0))
    of_query.write(1, 1)
    broker.cluster.transactions["billing.control"].state = "PrepareCommit"
    assert run("list", "--json") == 0
    notes = [each["note"] for each in documents()]
    assert "decisions cannot be read: one is being made (PrepareCommit): look again" in notes


def test_others_than_those_of_the_prefix_are_counted(
    query: Query, run: Command, capsys: Shown
) -> None:
    started(query).write(0, 1)
    assert run("list", "--prefix", "orders") == 0
    assert capsys.readouterr().err.splitlines() == [
        "None is open",
        "1 of others are open: list without --prefix",
    ]


def test_decisions_that_cannot_be_read_are_told(
    broker: MemoryBroker, query: Query, run: Command, documents: Documents
) -> None:
    started(query).write(0, 1)
    pending = Pending(5, next(broker.cluster.commits))
    broker.cluster.commit("billing", TopicPartition("orders", 1), pending)
    assert run("list", "--json") == 0
    (found,) = documents()
    assert "'billing' is also a group of consumers" in found["note"]


# -- describe --------------------------------------------------------------------------------------


def test_one_in_full(query: Query, run: Command, capsys: Shown) -> None:
    of_query = started(query)
    of_query.commit(0, of_query.write(0))
    of_query.write(1, 1)
    assert run("describe", "billing.r.0.0") == 0
    assert capsys.readouterr().out.splitlines() == [
        "transaction: billing.r.0.0",
        "state:       Ongoing",
        "producer:    1000",
        "epoch:       1",
        "coordinator: 0",
        "started:     2026-05-04T12:00:00Z",
        "open:        1m01s",
        "left:        13m59s",
        "query:       q",
        "run:         r",
        "last batch:  0",
        "task:        0",
        "attempt:     0",
        "note:        not decided",
        "",
        "TOPIC   PARTITION  START  STABLE  END  HELD-UP  NOTE",
        "orders          0      2       2    3        1  readers wait for it",
        "orders          1      4       4    5        1  readers wait for it",
        "orders          2      4       4    5        1  readers wait for it",
    ]


def test_one_that_is_not_there_does_not_hide_the_others(
    query: Query, run: Command, capsys: Shown
) -> None:
    started(query).write(0, 2)
    assert run("describe", "nope", "billing.r.0.0", "billing.r.0.1") == 1
    shown = capsys.readouterr()
    assert shown.err == "There is no transactional id 'nope'\n"
    assert shown.out.count("transaction: ") == 2


def test_one_of_another_program(
    broker: MemoryBroker, query: Query, run: Command, documents: Documents
) -> None:
    of_query = started(query)
    of_query.commit(0, of_query.write(0, 1))
    assert run("describe", "billing.control", "--json") == 0
    (found,) = documents()
    assert (found["state"], found["task"], found["partitions"]) == ("CompleteCommit", None, [])


def test_partitions_that_may_not_be_asked_are_named_all_the_same(
    broker: MemoryBroker, query: Query, run: Command, capsys: Shown
) -> None:
    started(query).write(0, 1)
    broker.control(DescribeProducersRequest, error_named("TOPIC_AUTHORIZATION_FAILED"), times=None)
    assert run("describe", "billing.r.0.0") == 0
    shown = capsys.readouterr()
    assert "How long readers wait is not known: DescribeProducers of orders-0" in shown.err
    assert "TOPIC   PARTITION\norders          0\n" in shown.out


# -- abort -----------------------------------------------------------------------------------------


def test_an_abort_is_shown_before_it_is_done(
    broker: MemoryBroker, query: Query, run: Command, capsys: Shown
) -> None:
    of_query = started(query)
    of_query.commit(0, of_query.write(0))
    (prepared,) = of_query.write(1, 1)
    assert run("abort", *naming(prepared)) == 0
    assert "Nothing was aborted: this was a dry run; add --execute" in capsys.readouterr().err
    assert state(broker, prepared) == "Ongoing"
    assert run("abort", *naming(prepared), "--execute") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].endswith("If this stays, see 'describe'")
    assert shown.err == (
        "It is aborted, and not decided. Its query writes the rows again: start it, if it is "
        "stopped\n"
    )
    assert state(broker, prepared) != "Ongoing"


def test_of_another_programs_no_query_is_said(query: Query, run: Command, capsys: Shown) -> None:
    with query.start().producer() as producer:
        begin_as(producer, "another", 60_000)
        producer.send("orders", b"x")
        prepared = producer.prepare_transaction()
    assert prepared is not None
    assert run("abort", *naming(prepared), "--execute") == 0
    assert capsys.readouterr().err == "It is aborted, and its producer is fenced\n"


@pytest.mark.parametrize("is_told", [True, False])
def test_an_abort_that_comes_too_late_says_what_it_has_done(
    query: Query,
    run: Command,
    capsys: Shown,
    documents: Documents,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_told: bool,
) -> None:
    of_query = started(query)
    (prepared,) = of_query.write(0, 1)
    batch = of_query.batch(0) if is_told else None
    late = LateAbortError(prepared.transactional_id, batch, None if is_told else KafkaError("gone"))

    def abort(*_: object) -> None:
        raise late

    monkeypatch.setattr(KafkaAdmin, "abort_transaction", abort)
    assert run("abort", *naming(prepared), "--execute") == 1
    shown = capsys.readouterr()
    note = "aborted, and decided meanwhile: start the query"
    note = note if is_told else "aborted; it may be decided"
    assert shown.out.splitlines()[1].endswith(note)
    assert shown.err == f"spark-kafka-source: {late}\n"
    assert run("abort", *naming(prepared), "--execute", "--json") == 1
    (found,) = documents()
    names = ("state", "aborted", "decided", "batch", "query", "run", "note")
    of_batch = (True, 0, "q", "r") if is_told else (None, None, None, "r")
    assert tuple(found[name] for name in names) == ("PrepareAbort", True, *of_batch, note)


def state(broker: MemoryBroker, prepared: PreparedTransaction) -> str:
    return transaction_of(broker, prepared).state


def test_another_epoch_is_not_aborted(
    broker: MemoryBroker, query: Query, run: Command, capsys: Shown
) -> None:
    (prepared,) = started(query).write(0, 1)
    words = [*naming(prepared)[:-1], "7"]
    assert run("abort", *words) == 1
    assert "Its producer is 1000 by now, with epoch 0" in capsys.readouterr().err
    assert run("abort", *words, "--execute") == 1
    assert "PRODUCER_FENCED" in capsys.readouterr().err
    assert state(broker, prepared) == "Ongoing"


def test_what_is_decided_is_not_aborted(
    broker: MemoryBroker, trial: Trial, run: Command, capsys: Shown
) -> None:
    first, _ = decided(started(trial.query))
    assert run("abort", *naming(first), "--execute") == 1
    assert capsys.readouterr().err == (
        "spark-kafka-source: billing.r.0.0 must not be aborted: batch 0 of query q (run r) "
        "is decided, and its rows would be lost. Start the query again, it commits them; or, if "
        "nobody is to start it, 'spark-kafka-source transactions finish billing --execute'\n"
    )
    again = trial.query.start()
    again.commit(0, again.write(0))
    trial.judge()


def test_a_driver_that_decides_just_now_is_fenced(
    broker: MemoryBroker, trial: Trial, run: Command
) -> None:
    # The start of a transaction tells it from the next one under its id.
    broker.cluster.now_ms = partial(next, count(NOW_MS))
    of_query = started(trial.query)
    of_query.commit(0, of_query.write(0))
    winners = of_query.write(1)

    def on_call(step: Step) -> None:
        if step is Step.CHECKED:
            assert run("abort", *naming(winners[0]), "--execute") == 0

    with pytest.raises(Exception, match="Another driver now decides under 'billing'"):
        of_query.commit(1, winners, on_call)
    of_query.abort(1, winners)
    again = trial.query.start()
    again.commit(1, again.write(1))
    trial.judge()


@pytest.mark.parametrize("number", ["", "-1", "1.5", "x", "9" * 19])
def test_numbers_that_are_none(number: str, run: Command, capsys: Shown) -> None:
    with pytest.raises(SystemExit) as raised:
        run("abort", "billing.r.0.0", "--producer-id", number, "--epoch", "0")
    assert raised.value.code == 2


# -- finish ----------------------------------------------------------------------------------------


def test_what_is_decided_is_finished(trial: Trial, run: Command, capsys: Shown) -> None:
    decided(started(trial.query))
    table = [
        f"{'TRANSACTION':13}  TASK  ATTEMPT  PRODUCER  EPOCH  OUTCOME",
        "billing.r.0.0     0        0      1000      0  open",
        "billing.r.0.1     0        1      1001      0  open",
    ]
    last = "The last decision under 'billing' is batch 0 of query q (run r) to topic 'orders'\n"
    assert run("finish", "billing") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == table
    assert shown.err == f"{last}Nothing was changed: this was a dry run; add --execute\n"
    assert run("finish", "billing", "--execute") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [each.replace("open", "committed") for each in table]
    assert shown.err == last
    trial.judge()
    again = trial.query.start()
    again.commit(0, again.write(0))
    trial.judge()


def test_rows_that_are_lost_are_accepted_only_where_it_is_said(
    broker: MemoryBroker, trial: Trial, run: Command, documents: Documents
) -> None:
    query = trial.query
    first, second = decided(started(query))
    transaction_of(broker, second).time_out(broker.cluster)
    transaction_of(broker, first).end(broker.cluster, commit=True)
    assert run("finish", "billing", "--execute", "--json") == 1
    assert [each["outcome"] for each in documents()] == ["committed", "aborted"]
    replay = query.start()
    replayed = replay.write(0)
    with pytest.raises(Exception, match="'spark-kafka-source transactions finish billing --acc"):
        replay.commit(0, replayed)
    replay.abort(0, replayed)
    assert run("finish", "billing", "--execute", "--accept-loss") == 0
    replay = query.start()
    replay.commit(0, replay.write(0))
    query.written -= set(query.values(0, 1))
    replay.commit(1, replay.write(1))
    trial.judge()


def test_the_batch_is_written_again_where_its_group_is_deleted(
    broker: MemoryBroker, trial: Trial
) -> None:
    """The other remedy writes all rows of the batch. Rows of the other tasks come twice."""
    first, second = decided(started(trial.query))
    transaction_of(broker, second).time_out(broker.cluster)
    transaction_of(broker, first).end(broker.cluster, commit=True)
    replay = trial.query.start()
    replayed = replay.write(0)
    with pytest.raises(Exception, match="'spark-kafka-source groups delete billing'"):
        replay.commit(0, replayed)
    replay.abort(0, replayed)
    servers = str(broker.address())
    assert main(["groups", "delete", "billing", "-b", servers]) == 0
    replay = trial.query.start()
    replay.commit(0, replay.write(0))
    found = trial.find(trial.query.servers, "orders", trial.query.partitions)
    assert set(found.values) == trial.query.written


@pytest.mark.parametrize("accepts", [True, False])
def test_what_nobody_has_seen_is_left_to_the_query(
    broker: MemoryBroker, trial: Trial, run: Command, capsys: Shown, *, accepts: bool
) -> None:
    """A commit of the rest would lose the aborted rows."""
    query = trial.query
    _, second = decided(started(query))
    transaction_of(broker, second).time_out(broker.cluster)
    words = ["--accept-loss"] if accepts else []
    assert run("finish", "billing", "--execute", *words) == int(not accepts)
    said = "it writes the batch again, and nothing is lost"
    assert (said in capsys.readouterr().err) is not accepts
    replay = query.start()
    replay.commit(0, replay.write(0))
    if accepts:
        query.written -= set(query.values(0, 1))
    trial.judge()


def test_brokers_that_do_not_end_it(
    broker: MemoryBroker, query: Query, run: Command, capsys: Shown
) -> None:
    decided(started(query))
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    broker.control(EndTxnRequest, Action.HANDLE)  # That of the control id.
    broker.control(EndTxnRequest, denied)
    assert run("finish", "billing", "--execute") == 1
    assert "1 of its 2 transactions could not be committed" in capsys.readouterr().err


def test_where_nothing_is_decided(run: Command, capsys: Shown) -> None:
    for words in ([], ["--execute"]):
        assert run("finish", "billing", *words) == 1
        assert "Nothing is decided under 'billing'" in capsys.readouterr().err
    assert run("finish", "a.b") == 2


@pytest.mark.parametrize(
    ("span_ms", "shown"),
    [(0, "0s"), (59_999, "59s"), (60_000, "1m00s"), (-5_000, "-5s"), (7_380_000, "2h03m")],
)
def test_spans(span_ms: int, shown: str) -> None:
    assert _span(span_ms) == shown
