"""Sentences of `docs/contributors/exactly-once-protocol.md`, each with a test of its danger.

A danger is a row that is lost or doubled. Then an error or a warning must say so. Each test's
docstring begins with its sentence, which stands on that page or in `docs/exactly-once.md`.
"""

import logging
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from spark_kafka_source.admin.deletion import delete_groups
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import Outcome
from spark_kafka_source.exactly_once.endings import Transactions
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    DoubtfulReplayError,
    PartlyCommittedError,
    PrefixInUseError,
)
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.testing.memory import MemoryBroker
from tests.documentation.pages import DOCS
from tests.exactly_once.conftest import PARTITIONS, Trial, in_memory_trial
from tests.exactly_once.dying import CrashError, decided, dies_at
from tests.exactly_once.judge import Verdict, found_in_memory, judge
from tests.exactly_once.query import ROWS, Query, Run, client_of
from tests.exactly_once.steps import Step
from tests.producer.blocking import BlockingCoordinator


def verdict(trial: Trial) -> Verdict:
    query = trial.query
    return judge(trial.find(query.servers, query.topic, query.partitions), query.written)


def end(query: Query, one: PreparedTransaction, *, commit: bool) -> None:
    """End a transaction, as another process or a timeout would."""
    with client_of(query.servers) as client:
        BlockingCoordinator(client, one.transactional_id).end(one.producer, commit=commit)


def forget_decisions(query: Query) -> None:
    """Delete the group of the decisions, as brokers do after 'offsets.retention.minutes'."""
    with client_of(query.servers) as client:
        assert client.run(delete_groups(client, [query.prefix])) == {query.prefix: None}


def test_the_sentences_stand_on_the_pages() -> None:
    pages = [DOCS / "contributors" / "exactly-once-protocol.md", DOCS / "exactly-once.md"]
    text = " ".join(" ".join(page.read_text().split()) for page in pages).replace("*", "")
    tests = [each for name, each in globals().items() if name.startswith("test_")]
    sentences = [" ".join((each.__doc__ or "").partition("\n\n")[0].split()) for each in tests]
    parts = [part.strip(" .") for each in sentences for part in each.split("[...]")]
    assert [part for part in parts if part not in text] == []


# -- errors in foreachBatch ------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [0, 1, 2])
def test_an_error_that_is_swallowed(tasks: int, trial: Trial) -> None:
    """Errors in `foreachBatch` must end the query. If code swallows one [...].

    The time of the decided transactions is up before the next micro-batch, with rows or without.
    """
    run = trial.query.start()
    winners = run.write(0)
    with pytest.raises(CrashError):
        run.commit(0, winners, dies_at(Step.DECIDED))
    for each in winners:
        end(trial.query, each, commit=False)
    error: KafkaError | None = None
    try:
        run.commit(1, run.write(1, tasks))
    except KafkaError as raised:
        error = raised
    assert error or not verdict(trial).lost, "rows are lost in silence"
    assert isinstance(error, DecidedRowsLostError)
    assert error.found == {Outcome.ABORTED: tuple(each.transactional_id for each in winners)}


def test_an_error_that_is_swallowed_in_time(trial: Trial) -> None:
    """Errors in `foreachBatch` must end the query. If code swallows one [...].

    The next micro-batch has no rows. It ends what was decided all the same.
    """
    run = trial.query.start()
    with pytest.raises(CrashError):
        run.commit(0, run.write(0), dies_at(Step.DECIDED))
    run.commit(1, [])
    trial.judge()


# -- two writes ------------------------------------------------------------------------------------


def second_write(run: Run, count: int) -> list[PreparedTransaction]:
    """Write other rows than the first write's, in the same micro-batch."""
    values = [f"{run.query.prefix}:second:{row}".encode() for row in range(count)]
    with run.producer() as producer:
        return [run.write_values(producer, 0, values)]


@pytest.mark.parametrize("count", [1, 2 * ROWS, 9 * ROWS], ids=["fewer", "as many", "more"])
def test_a_second_write_after_the_replay_of_the_first(count: int, trial: Trial) -> None:
    """Two writes to one topic in one `foreachBatch` need two prefixes.

    The first run died between its two writes. After the restart the first write is a replay.
    """
    query = trial.query
    run = query.start()
    run.commit(0, run.write(0))
    run = query.start()
    run.commit(0, run.write(0))
    winners = second_write(run, count)
    error: KafkaError | None = None
    try:
        run.commit(0, winners)
    except KafkaError as raised:
        error = raised
        run.abort(0, winners)
    assert error or not verdict(trial).lost, "rows are lost in silence"
    assert "give the second write a prefix of its own" in str(error)
    assert verdict(trial) == Verdict(lost=count, doubled=0, held_up=0)


# -- what brokers forget ---------------------------------------------------------------------------


@pytest.mark.parametrize("batch_id", [0, 1])
def test_a_decision_that_brokers_forget(
    batch_id: int, trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    """A query that was stopped during a micro-batch for longer than that writes the micro-batch
    again; a warning says so.
    """
    query = trial.query
    run = query.start()
    for each in range(batch_id + 1):
        run.commit(each, run.write(each))
    forget_decisions(query)
    run = query.start()
    with caplog.at_level(logging.WARNING):
        run.commit(batch_id, run.write(batch_id))
    assert verdict(trial).doubled == 2 * ROWS
    assert f"batch {batch_id} of query" in caplog.text, "rows are doubled in silence"
    assert query.prefix in caplog.text


@pytest.mark.parametrize("batch_id", [2, 9])
def test_a_query_that_wrote_at_least_once_before(
    batch_id: int, in_memory: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    """A query that wrote at least once before warns once on its old checkpoint that rows may be
    written twice, since it finds no decision. With `doubtfulReplays=fail` its first start ends
    with `DoubtfulReplayError`: use `warn` for one start.
    """
    query = in_memory.query
    query.caution = Caution.FAIL
    run = query.start()
    winners = run.write(batch_id)
    with caplog.at_level(logging.WARNING), pytest.raises(DoubtfulReplayError):
        run.commit(batch_id, winners)
    run.abort(batch_id, winners)
    query.caution = Caution.WARN
    run = query.start()
    with caplog.at_level(logging.WARNING):
        run.commit(batch_id, run.write(batch_id))
        assert caplog.text.count("its rows are written twice") == 1
        query.caution = Caution.FAIL
        run = query.start()
        run.commit(batch_id + 1, run.write(batch_id + 1))
    assert caplog.text.count("its rows are written twice") == 1
    in_memory.judge()


# -- a checkpoint from an older copy --------------------------------------------------------------


def test_another_prefix_after_an_older_copy_of_the_checkpoint(trial: Trial) -> None:
    """Another prefix writes every micro-batch since the copy again: their rows are there twice.

    The copy is older by two micro-batches. The error of the old prefix says the same.
    """
    query = trial.query
    run = query.start()
    for batch_id in range(3):
        run.commit(batch_id, run.write(batch_id))
    run = query.start()
    winners = run.write(1)
    with pytest.raises(PrefixInUseError, match="Another prefix writes every batch since that copy"):
        run.commit(1, winners)
    run.abort(1, winners)
    trial.judge()
    other = replace(query, prefix=f"{query.prefix}-other")
    run = other.start()
    for batch_id in (1, 2):
        with run.producer() as producer:
            values = query.values(batch_id, 0)
            run.commit(batch_id, [run.write_values(producer, batch_id, values)])
    assert verdict(trial) == Verdict(lost=0, doubled=2 * ROWS, held_up=0)


# -- rows that are lost ----------------------------------------------------------------------------


def lose_the_second_task(query: Query) -> tuple[PreparedTransaction, PreparedTransaction]:
    """Decide a micro-batch of two tasks. Commit one, and abort the other, as its timeout does."""
    first, second = decided(query.start())
    end(query, first, commit=True)
    end(query, second, commit=False)
    return first, second


def test_after_a_loss_the_whole_micro_batch_can_be_written_again(trial: Trial) -> None:
    """[...] writes the whole micro-batch again. Rows that were not lost are there twice."""
    query = trial.query
    lose_the_second_task(query)
    for _ in range(2):
        run = query.start()
        winners = run.write(0)
        with pytest.raises(DecidedRowsLostError, match=f"groups delete {query.prefix}"):
            run.commit(0, winners)
        run.abort(0, winners)
    assert verdict(trial) == Verdict(lost=ROWS, doubled=0, held_up=0)
    forget_decisions(query)
    run = query.start()
    run.commit(0, run.write(0))
    assert verdict(trial) == Verdict(lost=0, doubled=ROWS, held_up=0)


# -- what readers see ------------------------------------------------------------------------------


def test_readers_of_a_micro_batch_whose_driver_died_amid_its_ends(topic: str) -> None:
    """If the driver dies meanwhile, readers see a part of the micro-batch until the restart. They
    never see a row twice.
    """
    with MemoryBroker(2) as broker:
        trial = in_memory_trial(broker, topic)
        query = trial.query
        first, _ = decided(query.start())
        end(query, first, commit=True)
        seen = Counter(found_in_memory(broker, "", topic, PARTITIONS).values)
        assert 0 < seen.total() < len(query.written)
        assert set(seen.values()) == {1}
        run = query.start()
        run.commit(0, run.write(0))
        trial.judge()


# -- plain batches ---------------------------------------------------------------------------------


def test_the_tasks_of_a_plain_batch_that_are_not_named_are_there_once(trial: Trial) -> None:
    """[...] a part of the batch is committed, and the rest is aborted. If `save()` still runs, it
    raises `PartlyCommittedError`, which names their ids.
    """
    query = trial.query
    run = query.start()
    winners = run.write(0, 3)
    with run.driver() as driver:
        ends = Transactions.end

        async def end_first(transactions: Transactions, those: Any, **more: Any) -> Any:
            end(query, winners[1], commit=False)  # Its time is up after the check.
            return await ends(transactions, those, **more)

        with (
            patch.object(Transactions, "end", end_first),
            pytest.raises(PartlyCommittedError, match="ids that end with") as raised,
        ):
            driver.end_all(winners)
    assert [name for name, _ in raised.value.failed] == [winners[1].transactional_id]
    query.written -= set(query.values(0, 1))
    trial.judge()
