"""A replay that is not the micro-batch that was decided: no row is dropped in silence."""

import logging

import pytest

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.exactly_once.decision import Content
from spark_kafka_source.exactly_once.errors import (
    DoubtfulReplayError,
    OtherDriverError,
    PrefixInUseError,
    ReplayDiffersError,
)
from spark_kafka_source.exactly_once.replays import Caution
from tests.exactly_once.conftest import Trial
from tests.exactly_once.dying import CrashError, dies_at
from tests.exactly_once.query import ROWS, Run
from tests.exactly_once.steps import Step

TASKS = 2


def amount(run: Run, batch_id: int, tasks: int = TASKS, count: int = ROWS) -> Content:
    """Return the amount of the rows that `Run.write` writes."""
    values = [each for task in range(tasks) for each in run.query.values(batch_id, task, count)]
    return Content(len(values), sum(map(len, values)))


@pytest.mark.parametrize("step", [None, Step.DECIDED, Step.ONE_ENDED])
def test_a_replay_with_more_rows_is_an_error_at_each_start(step: Step | None, trial: Trial) -> None:
    """A checkpoint was restored from a copy, so the batch's number stands for other rows, too.

    Before the error, all that was decided is committed.
    """
    run = trial.query.start()
    winners = run.write(0, TASKS)
    if step is None:
        run.commit(0, winners, content=amount(run, 0))
    else:
        with pytest.raises(CrashError):
            run.commit(0, winners, dies_at(step), amount(run, 0))
    expected = set(trial.query.written)
    for tasks, count in ((TASKS + 1, ROWS), (1, 3 * ROWS)):
        run = trial.query.start()
        winners = run.write(0, tasks, count=count)
        with pytest.raises(ReplayDiffersError) as raised:
            run.commit(0, winners, content=amount(run, 0, tasks, count))
        run.abort(0, winners)
        assert raised.value.written.rows == TASKS * ROWS
        assert raised.value.found.rows == tasks * count
        for said in (
            f"groups delete {trial.query.prefix}'",
            "'doubtfulReplays' to 'accept'",
            "older copy",
        ):
            assert said in str(raised.value)
    trial.query.written = expected
    trial.judge()


def test_a_replay_by_other_tasks_with_the_same_rows_is_none(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    run = trial.query.start()
    content = amount(run, 0, 4)
    run.commit(0, run.write(0, 4), content=content)
    run = trial.query.start()
    run.commit(0, run.write(0, 1), content=content)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
    trial.judge()


WRITTEN = Content(6, 60, 0x1234)


def replay(trial: Trial, caution: Caution, replayed: Content, written: Content = WRITTEN) -> str:
    """Write a micro-batch, run it again, and return the name of the error of that."""
    run = trial.query.start()
    run.commit(0, run.write(0), content=written)
    trial.query.caution = caution
    run = trial.query.start()
    winners = run.write(0) if replayed.rows else []
    try:
        run.commit(0, winners, content=replayed)
    except (ReplayDiffersError, DoubtfulReplayError) as error:
        run.abort(0, winners)
        return f"{type(error).__name__}: {error}"
    return ""


COUNTS = [Content(7, 60), Content(5, 60), Content(6, 61), Content(6, 59, 0x1234), Content(0, 0, 0)]


@pytest.mark.parametrize("caution", [Caution.WARN, Caution.FAIL])
@pytest.mark.parametrize("replayed", COUNTS, ids=str)
def test_another_number_of_rows_or_bytes_is_an_error(
    replayed: Content, caution: Caution, in_memory: Trial
) -> None:
    error = replay(in_memory, caution, replayed)
    assert error.startswith("ReplayDiffersError: ")
    assert f"{WRITTEN}, and now it is to be written with {replayed}" in error
    in_memory.judge()


def test_as_many_other_rows_are_a_doubt(in_memory: Trial, caplog: pytest.LogCaptureFixture) -> None:
    trial, other = in_memory, WRITTEN._replace(fingerprint=0x1235)
    error = replay(trial, Caution.FAIL, other)
    assert error.startswith("DoubtfulReplayError: ")
    assert "'doubtfulReplays' to 'warn' for one start" in error
    assert not caplog.records
    trial.query.caution = Caution.WARN
    run = trial.query.start()
    run.commit(0, run.write(0), content=other)
    (warning,) = caplog.records
    said = f"is a replay with {other}; written and decided were {WRITTEN}."
    assert f"{run.batch(0)} {said}" in warning.getMessage()
    assert said in error
    trial.judge()


@pytest.mark.parametrize(
    ("caution", "replayed", "written"),
    [
        (Caution.FAIL, WRITTEN, WRITTEN),
        # Version 0.3 made the decision.
        (Caution.FAIL, WRITTEN, Content(6, 60)),
        *((Caution.ACCEPT, other, WRITTEN) for other in (*COUNTS, Content(6, 60, 0x1235))),
    ],
    ids=str,
)
def test_no_doubt(
    caution: Caution,
    replayed: Content,
    written: Content,
    in_memory: Trial,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert replay(in_memory, caution, replayed, written) == ""
    assert not caplog.records
    in_memory.judge()


# -- two writes of a micro-batch under one prefix --------------------------------------------------


@pytest.mark.parametrize("step", [Step.DECIDED, Step.ENDED])
def test_a_second_write_is_refused_after_a_restart_between_the_two(
    step: Step, trial: Trial
) -> None:
    """The replay of the first write is dropped. The second write is no replay of it."""
    run = trial.query.start()
    with pytest.raises(CrashError):
        run.commit(0, run.write(0), dies_at(step))
    for _ in range(2):
        run = trial.query.start()
        run.commit(0, run.write(0))
        second = run.write(0)
        with pytest.raises(PrefixInUseError, match="a prefix of its own"):
            run.commit(0, second)
        run.abort(0, second)
    run = trial.query.start()
    run.commit(0, run.write(0))
    run.commit(1, run.write(1))
    trial.judge()


def test_a_replay_without_rows_leaves_the_write_to_the_one_that_has_them(trial: Trial) -> None:
    """Of two writes under one prefix, one may be empty each time."""
    run = trial.query.start()
    for _ in range(2):
        run.commit(0, [])
        run.commit(0, run.write(0))
        run = trial.query.start()
    run.commit(1, run.write(1))
    trial.judge()


def test_a_replay_refuses_what_another_run_is_writing(trial: Trial) -> None:
    """Two drivers replay the same micro-batch, and one of them has gone on."""
    run = trial.query.start()
    run.commit(0, run.write(0))
    other = trial.query.start()
    other.commit(0, other.write(0))
    going_on = other.write(1)
    run = trial.query.start()
    run.commit(0, run.write(0))
    with pytest.raises(OtherDriverError):
        other.commit(1, going_on)
    other.abort(1, going_on)
    run = trial.query.start()
    run.commit(1, run.write(1))
    trial.judge()


# -- decisions that are gone -----------------------------------------------------------------------


@pytest.mark.parametrize("batch_id", [0, 1])
def test_a_micro_batch_whose_decision_is_gone_is_a_doubt(
    batch_id: int, trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers have forgotten it, or somebody has deleted the group."""
    query = trial.query
    run = query.start()
    for each in range(batch_id + 1):
        run.commit(each, run.write(each))
    assert not caplog.records  # A new query is told from one that is forgotten.
    with KafkaAdmin(bootstrap_servers=query.servers) as admin:
        admin.delete_groups([query.prefix])
    query.caution = Caution.FAIL
    run = query.start()
    winners = run.write(batch_id)
    with pytest.raises(DoubtfulReplayError, match="its rows are written twice"):
        run.commit(batch_id, winners)
    run.abort(batch_id, winners)
    trial.judge()
    query.caution = Caution.WARN
    run = query.start()
    run.commit(batch_id, run.write(batch_id))
    assert "its rows are written twice" in caplog.text
