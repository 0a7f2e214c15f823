"""Code in foreachBatch writes a micro-batch to several topics, under one prefix."""

from dataclasses import replace

import pytest

from spark_kafka_source.admin import KafkaAdmin, NewTopic
from spark_kafka_source.exactly_once.decision import Content, Outcome
from spark_kafka_source.exactly_once.errors import (
    DecidedTransactionError,
    DoubtfulReplayError,
    OtherDriverError,
    PrefixInUseError,
    ReplayDiffersError,
)
from spark_kafka_source.exactly_once.repair import abort_undecided, finish, last_outcomes
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.exactly_once.conftest import PARTITIONS, Trial, in_memory_trial, transaction_of
from tests.exactly_once.dying import CrashError, decided, dies_at
from tests.exactly_once.query import Run, client_of, write_to_all
from tests.exactly_once.steps import Step

ORDERS = pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["same", "swapped"])


def two_topics(trial: Trial) -> list[Trial]:
    """The writes of one query to two topics, and the judge of each."""
    query = trial.query
    other = replace(query, topic=f"{query.topic}-other", written=set())
    with KafkaAdmin(bootstrap_servers=query.servers) as admin:
        admin.create_topics([NewTopic(other.topic, PARTITIONS)])
    return [trial, Trial(other, trial.find)]


@pytest.fixture
def writes(trial: Trial) -> list[Trial]:
    return two_topics(trial)


@pytest.fixture
def in_memory_writes(broker: MemoryBroker, topic: str) -> list[Trial]:
    return two_topics(in_memory_trial(broker, topic))


def start(writes: list[Trial]) -> list[Run]:
    """Start the query. Return its run once for each write."""
    run = writes[0].query.start()
    run.look(0)
    return [replace(run, query=each.query) for each in writes]


def judge(writes: list[Trial]) -> None:
    for each in writes:
        each.judge()


@ORDERS
@pytest.mark.parametrize("step", [Step.RECORDED, Step.DECIDED, Step.ONE_ENDED, Step.ENDED])
@pytest.mark.parametrize("dies_in", [0, 1], ids=["first", "second"])
def test_a_run_that_dies_in_a_write(
    dies_in: int, step: Step, order: tuple[int, int], in_memory_writes: list[Trial]
) -> None:
    """The next run repeats both in any order. What is decided is dropped, and the rest is written.

    Both have other rows each, so neither is taken for the other.
    """
    die_and_repeat(in_memory_writes, dies_in, step, order)


@pytest.mark.parametrize("dies_in", [0, 1], ids=["first", "second"])
def test_a_run_that_dies_on_real_brokers(dies_in: int, writes: list[Trial]) -> None:
    die_and_repeat(writes, dies_in, Step.ONE_ENDED, (1, 0))


def die_and_repeat(writes: list[Trial], dies_in: int, step: Step, order: tuple[int, int]) -> None:
    counts = 2, 5
    runs = start(writes)
    for place in range(dies_in):
        winners = runs[place].write(0, count=counts[place])
        runs[place].commit(0, winners, content=Content(counts[place], 1))
    winners = runs[dies_in].write(0, count=counts[dies_in])
    with pytest.raises(CrashError):
        runs[dies_in].commit(0, winners, dies_at(step), Content(counts[dies_in], 1))
    for _ in range(2):
        runs = start(writes)
        for place in order:
            winners = runs[place].write(0, count=counts[place])
            runs[place].commit(0, winners, content=Content(counts[place], 1))
    for run in runs:
        run.commit(1, run.write(1))
    judge(writes)


def test_one_driver_remembers_all_writes(writes: list[Trial]) -> None:
    runs = start(writes)
    with runs[0].driver() as driver:
        for batch_id in range(3):
            for run in runs if batch_id % 2 else runs[::-1]:
                topic = run.query.topic
                driver.commit(run.batch(batch_id), run.write(batch_id), write=topic)
    judge(writes)


def test_two_processes_of_a_driver_by_turns(writes: list[Trial]) -> None:
    """Spark lets any process commit that waits. None takes the other for a driver elsewhere."""
    runs = start(writes)
    with runs[0].driver() as one, runs[1].driver() as other:
        for number in range(6):
            run, driver = runs[number // 3 % 2], (one, other)[number % 2]
            topic = run.query.topic
            driver.commit(run.batch(number), run.write(number), write=topic)
    judge(writes)


def test_a_process_that_remembers_is_refused_after_another_run(writes: list[Trial]) -> None:
    """To begin without memory is right only after a process of the same run."""
    runs = start(writes)
    with runs[0].driver() as driver:
        driver.commit(runs[0].batch(0), runs[0].write(0))
        going_on = runs[0].write(1)
        decided(start(writes)[1], 1)
        with pytest.raises(OtherDriverError):
            driver.commit(runs[0].batch(1), going_on)
    runs[0].abort(1, going_on)
    for run in start(writes):
        run.commit(1, run.write(1))
    judge(writes)


def test_a_replay_is_compared_with_its_own_write(in_memory_writes: list[Trial]) -> None:
    runs = start(in_memory_writes)
    for run, rows in zip(runs, (6, 60), strict=True):
        run.commit(0, run.write(0), content=Content(rows, 1))
    runs = start(in_memory_writes)
    winners = runs[0].write(0)
    with pytest.raises(ReplayDiffersError, match=f"written to topic '{runs[0].query.topic}' with"):
        runs[0].commit(0, winners, content=Content(60, 1))
    runs[0].abort(0, winners)
    judge(in_memory_writes)


def test_a_write_without_rows_ends_what_is_decided_of_the_others(
    in_memory_writes: list[Trial],
) -> None:
    decided(start(in_memory_writes)[0])
    in_memory_writes[1].query.start().commit(0, [])  # No task has looked.
    judge(in_memory_writes)
    runs = start(in_memory_writes)
    runs[0].commit(0, runs[0].write(0))
    judge(in_memory_writes)


@ORDERS
def test_out_of_time_before_the_replay_of_another_write(
    order: tuple[int, int], broker: MemoryBroker, in_memory_writes: list[Trial]
) -> None:
    """No reader has seen a row. The run repeats both writes, so that nothing is lost."""
    for each in decided(start(in_memory_writes)[0]):
        transaction_of(broker, each).time_out(broker.cluster)
    runs = start(in_memory_writes)
    for place in order:
        runs[place].commit(0, runs[place].write(0))
    judge(in_memory_writes)


def test_what_brokers_have_forgotten_of_a_write_that_is_rare(
    broker: MemoryBroker, in_memory_writes: list[Trial]
) -> None:
    """A later decision, of any write, says that it was committed."""
    runs = start(in_memory_writes)
    rare = runs[1].write(0)
    runs[1].commit(0, rare)
    another_process = replace(runs[0], worker=None)
    another_process.commit(1, another_process.write(1))
    for each in rare:
        del broker.cluster.transactions[each.transactional_id]
    for run in start(in_memory_writes):
        run.commit(2, run.write(2))
    judge(in_memory_writes)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", ""), ("b", ""), ("", "a"), ("", "b")],
    ids=["a, then a column", "b, then a column", "a column, then a", "a column, then b"],
)
def test_a_decision_that_would_replace_one_of_another_write_is_refused(
    first: str, second: str, broker: MemoryBroker, in_memory_writes: list[Trial]
) -> None:
    """A column's rows go to the topic of the other write, too. Its decision is kept at both."""
    runs = start(in_memory_writes)
    by_name = {"a": runs[:1], "b": runs[1:], "": runs}

    def write(name: str, batch_id: int) -> tuple[list[PreparedTransaction], str]:
        own = by_name[name]
        return [write_to_all(own, batch_id)], own[0].query.topic if name else ""

    with runs[0].driver() as driver:
        prepared, name = write(first, 0)
        driver.commit(runs[0].batch(0), prepared, write=name)
        before = dict(broker.cluster.metadata)
        expected = [set(each.query.written) for each in runs]
        prepared, name = write(second, 0)
        with pytest.raises(PrefixInUseError, match="only one of them can be remembered there"):
            driver.commit(runs[0].batch(0), prepared, write=name)
        assert broker.cluster.metadata == before
        driver.abort(runs[0].batch(0), prepared)
        for run, values in zip(runs, expected, strict=True):
            run.query.written.intersection_update(values)
        # In another micro-batch no replay needs it.
        prepared, name = write(second, 1)
        driver.commit(runs[0].batch(1), prepared, write=name)
    judge(in_memory_writes)


def test_decisions_of_several_parts(in_memory_writes: list[Trial]) -> None:
    runs = start(in_memory_writes)
    for run, tasks in zip(runs, (2, 110), strict=True):
        run.commit(0, run.write(0, tasks, count=1))
    for run, tasks in zip(start(in_memory_writes), (2, 110), strict=True):
        run.commit(0, run.write(0, tasks, count=1))
    judge(in_memory_writes)


def test_a_decision_of_another_write_that_is_about_to_be_seen_is_waited_for(
    broker: MemoryBroker, in_memory_writes: list[Trial]
) -> None:
    """Brokers before 4.0 show offsets after the end of a transaction, one after the other.

    They tell that an offset is to come only to a request that names its partition.
    """
    runs = start(in_memory_writes)
    runs[0].commit(0, runs[0].write(0))
    runs = start(in_memory_writes)
    winners = runs[1].write(0)
    cluster, group = broker.cluster, runs[0].query.prefix
    hidden = {group: cluster.committed.pop(group)}

    def seen(request: OffsetFetchRequest) -> Action:
        if request.topics is not None:
            cluster.committed.update(hidden)
        return Action.HANDLE

    broker.control(OffsetFetchRequest, seen, times=None)
    with runs[1].driver() as driver:
        driver.commit(runs[1].batch(0), winners)
        again = runs[0].write(0)
        topic = runs[0].query.topic
        driver.commit(runs[0].batch(0), again, write=topic)
    judge(in_memory_writes)


def test_oversight_of_all_writes(in_memory_writes: list[Trial]) -> None:
    """The last decision of each is finished, and what it has is not aborted."""
    runs = start(in_memory_writes)
    runs[0].commit(0, runs[0].write(0))
    winners = runs[1].write(0)
    with pytest.raises(CrashError):
        runs[1].commit(0, winners, dies_at(Step.DECIDED))
    names = runs[0].query.names
    with client_of(runs[0].query.servers) as client:
        for each in winners:
            with pytest.raises(DecidedTransactionError):
                abort_undecided(client, each.transactional_id, each.producer)
        found = [{*each.outcomes.values()} for each in last_outcomes(client, names)]
        assert found == [{Outcome.COMMITTED}, {Outcome.OPEN}]
        assert [{*each.outcomes.values()} for each in finish(client, names)] == [
            {Outcome.COMMITTED}
        ] * 2
    judge(in_memory_writes)


def test_writes_of_an_earlier_micro_batch_are_a_rollback(in_memory_writes: list[Trial]) -> None:
    """Also if the write itself has had no rows since."""
    runs = start(in_memory_writes)
    for batch_id in range(2):
        runs[0].commit(batch_id, runs[0].write(batch_id))
    run = start(in_memory_writes)[1]
    winners = run.write(0)
    with pytest.raises(PrefixInUseError, match="The checkpoint was rolled back"):
        run.commit(0, winners)
    run.abort(0, winners)
    in_memory_writes[1].query.written.clear()
    judge(in_memory_writes)


# -- topics that are deleted -----------------------------------------------------------------------


@pytest.mark.parametrize("deleted", [0, 1], ids=["first", "second"])
def test_a_topic_of_a_column_is_made_again_amid_a_micro_batch(
    deleted: int, writes: list[Trial], caplog: pytest.LogCaptureFixture
) -> None:
    """Its decision is gone with it, and is kept at the other topic. No row there is doubled."""
    runs = start(writes)
    with runs[0].driver() as driver:
        driver.commit(runs[0].batch(0), [write_to_all(runs, 0)], write="")
        driver.commit(runs[0].batch(1), [write_to_all(runs, 1)], write="")
    judge(writes)
    lost = writes[deleted].query
    with KafkaAdmin(bootstrap_servers=lost.servers) as admin:
        admin.delete_topic(lost.topic)
        admin.create_topics([NewTopic(lost.topic, PARTITIONS)])
    lost.written.clear()
    for fails in (True, False):
        for each in writes:
            each.query.caution = Caution.FAIL if fails else Caution.WARN
        runs = start(writes)
        with runs[0].driver() as driver:
            replayed = [write_to_all(runs, 1)]
            if fails:
                with pytest.raises(DoubtfulReplayError, match=lost.topic):
                    driver.commit(runs[0].batch(1), replayed, write="")
                driver.abort(runs[0].batch(1), replayed)
                continue
            driver.commit(runs[0].batch(1), replayed, write="")
            assert lost.topic in caplog.text
            lost.written.clear()
            driver.commit(runs[0].batch(2), [write_to_all(runs, 2)], write="")
    judge(writes)
