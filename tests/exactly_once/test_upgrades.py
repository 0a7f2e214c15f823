"""A cluster is upgraded or downgraded in the midst of a run, and decisions of version 0.3."""

import base64
import json

import pytest

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.exactly_once.decision import Outcome
from spark_kafka_source.exactly_once.driver import PreparedWrite
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError
from spark_kafka_source.producer import Generation
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.conftest import (
    PARTITIONS,
    PROPERTIES,
    SECOND_LEVEL,
    Trial,
    commit_offset,
    in_memory_trial,
    transaction_of,
)
from tests.exactly_once.dying import CrashError, dies_at
from tests.exactly_once.judge import found_by_confluent
from tests.exactly_once.query import Query, Run
from tests.exactly_once.steps import Step

pytestmark = pytest.mark.memory(nodes=2)

FIRST, SECOND = Generation.FIRST, Generation.SECOND
CHANGES = pytest.mark.parametrize(
    ("before", "after"), [(FIRST, SECOND), (SECOND, FIRST)], ids=["upgrade", "downgrade"]
)


@pytest.fixture
def trial(broker: MemoryBroker, topic: str) -> Trial:
    return in_memory_trial(broker, topic)


def finalise(broker: MemoryBroker, generation: Generation) -> None:
    broker.cluster.features.clear()
    broker.cluster.features.update(SECOND_LEVEL if generation is SECOND else {})


@CHANGES
def test_processes_go_on_as_they_began(
    before: Generation, after: Generation, broker: MemoryBroker, trial: Trial
) -> None:
    finalise(broker, before)
    run = trial.query.start()
    run.commit(0, run.write(0))
    finalise(broker, after)
    for batch_id in (1, 2):
        run.commit(batch_id, run.write(batch_id))
    assert run.worker is not None
    assert run.worker.generation is before
    run = trial.query.start()
    run.commit(3, run.write(3))
    assert run.worker is not None
    assert run.worker.generation is after
    trial.judge()


@CHANGES
def test_workers_of_both_generations_in_one_micro_batch(
    before: Generation, after: Generation, broker: MemoryBroker, trial: Trial
) -> None:
    """Some have begun before the change. The driver takes the first generation then."""
    query = trial.query
    finalise(broker, before)
    old = query.start()
    old.commit(0, old.write(0))
    finalise(broker, after)
    new = Run(query, old.run_id)
    for batch_id in (1, 2):
        with old.producer() as producer:
            prepared = [
                each.write_task(producer, batch_id, task) for task, each in enumerate((old, new))
            ]
        both = Run(query, old.run_id, old.worker, FIRST)
        both.commit(batch_id, prepared)
    new.commit(3, new.write(3))
    trial.judge()


@CHANGES
def test_a_kept_driver_of_the_other_generation(
    before: Generation, after: Generation, broker: MemoryBroker, trial: Trial
) -> None:
    """Tasks of the same run write in the other one. Another object commits for them."""
    query = trial.query
    run = query.start()
    for batch_id, generation in enumerate((before, after, before, after)):
        finalise(broker, generation)
        run = Run(query, run.run_id)  # Its worker is another process.
        winners = run.write(batch_id)
        with run.driver() as driver:
            assert run.worker is not None
            seen = frozenset({run.worker.seen})
            driver.commits.commit(PreparedWrite(run.batch(batch_id), tuple(winners), seen))
    trial.judge()


@pytest.mark.kafka
@pytest.mark.long
def test_a_real_cluster_that_goes_back_and_forth(topic: str) -> None:
    with LocalKafka(properties=PROPERTIES) as kafka:
        kafka.create_topic(topic, PARTITIONS)
        query = Query(kafka.bootstrap_servers, topic, PARTITIONS)
        trial = Trial(query, found_by_confluent)
        batches = iter(range(100))
        run = query.start()
        for how, level, generation in (
            ("start", 2, SECOND),
            ("downgrade", 1, SECOND),
            ("start", 1, FIRST),
            ("upgrade", 2, FIRST),
            ("start", 2, SECOND),
        ):
            if how == "start":
                run = query.start()
            else:
                kafka.tool("features", how, "--feature", f"transaction.version={level}")
            with run.driver() as driver:
                for batch_id in (next(batches), next(batches)):
                    driver.commit(run.batch(batch_id), run.write(batch_id))
            assert run.look(0).generation is generation
        trial.judge()


# -- version 0.3 -----------------------------------------------------------------------------------


def as_0_3(broker: MemoryBroker, query: Query) -> None:
    """Let the last decision be as version 0.3 would have written it: without places."""
    text = json.loads(broker.cluster.metadata[query.prefix, query.where])
    _, _, rows = base64.b64decode(text["tasks"]).partition(b"\n")
    tasks = [rows[at : at + 18] + rows[at + 20 : at + 26] for at in range(0, len(rows), 40)]
    text |= {"v": 1, "tasks": base64.b64encode(b"".join(tasks)).decode()}
    commit_offset(broker, query.prefix, query.where, text["batch"], json.dumps(text))


@pytest.mark.parametrize("step", [Step.DECIDED, Step.ONE_ENDED, Step.ENDED], ids=str)
def test_a_decision_of_0_3_is_ended(step: Step, broker: MemoryBroker, trial: Trial) -> None:
    old = trial.query.start()
    winners = old.write(0)
    with pytest.raises(CrashError):
        old.commit(0, winners, dies_at(step))
    as_0_3(broker, trial.query)
    run = trial.query.start()
    run.commit(0, run.write(0))
    assert {transaction_of(broker, each).state for each in winners} == {"CompleteCommit"}
    run.commit(1, run.write(1))
    trial.judge()


def test_a_decision_of_0_3_whose_ids_went_on_is_not_guessed(
    broker: MemoryBroker, trial: Trial
) -> None:
    """That version took it for committed. Somebody else may have taken the ids."""
    run = trial.query.start()
    winners = run.write(0)
    run.commit(0, winners)
    run.write(1)
    as_0_3(broker, trial.query)
    replay = trial.query.start()
    replayed = replay.write(0)
    with pytest.raises(DecidedRowsLostError, match="start that version once") as raised:
        replay.commit(0, replayed)
    assert raised.value.found == {Outcome.UNKNOWN: tuple(each[0] for each in winners)}
    replay.abort(0, replayed)
    going_on = trial.query.start()
    going_on.commit(1, going_on.write(1))  # A doubt: the query has gone on.
    trial.judge()


def test_a_decision_of_0_2_is_refused_if_no_later_one_is_there(
    broker: MemoryBroker, trial: Trial
) -> None:
    """One at a topic that was written to long ago does no harm."""
    query = trial.query
    run = query.start()
    run.commit(1, run.write(1))
    text = json.loads(broker.cluster.metadata[query.prefix, query.where])
    for later in ("rows", "bytes", "write"):
        del text[later]
    for batch_id, is_refused in ((1, False), (2, True)):
        old = json.dumps(text | {"v": 1, "tasks": "", "batch": batch_id})
        commit_offset(broker, query.prefix, TopicPartition(query.topic, 1), 0, old)
        if is_refused:
            with pytest.raises(ProtocolError, match="run the query once with version"):
                query.start().look(3)
        else:
            run = query.start()
            run.commit(1, run.write(1))
    trial.judge()
