"""A group coordinator that stands still, is replaced, and then tells old decisions."""

import threading

import pytest

from spark_kafka_source.client import CoordinatorKey
from spark_kafka_source.exactly_once.decision_store import DecisionStore
from spark_kafka_source.net import Deadline
from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import found_by_confluent, judge
from tests.exactly_once.query import Query, RunDriver, client_of
from tests.reliability.conftest import Trial
from tools.reliability.deciding.faults import TIMEOUT_MS
from tools.reliability.leaders import make_whole

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

PARTITIONS = 3
ASK_MS = 60_000
# The driver has sent its first request by then. It waits in the broker's socket.
ASKED_SECONDS = 1.0


def coordinators(query: Query) -> tuple[int, int]:
    """Return the coordinators of the decisions' group and of their transactional id."""
    names = query.names
    group = CoordinatorKey.of_group(names.group_id(0))
    control = CoordinatorKey.of_transaction(names.control_id)
    with client_of(query.servers) as client:
        found = [
            client.run(client.coordinator(key, Deadline.after_ms(ASK_MS)))
            for key in (group, control)
        ]
    return found[0].node_id, found[1].node_id


def query_with_two_coordinators(kafka: LocalKafka, topic: str, written: set[bytes]) -> Query:
    """Return a query that has written a micro-batch. Its group and its id have two coordinators."""
    while True:
        query = Query(kafka.bootstrap_servers, topic, PARTITIONS, written=written)
        query.timeout_ms = TIMEOUT_MS
        run = query.start()
        run.commit(0, run.write(0))
        group, control = coordinators(query)
        if group != control:
            return query


def replay_at_former_coordinator(kafka: LocalKafka, query: Query, told: list[int | None]) -> None:
    """Decide a micro-batch while its group's coordinator stands still. Replay it at that broker.

    `told` has the micro-batches of the decisions that brokers then tell.
    """
    former = kafka.broker(coordinators(query)[0])
    run, replay = query.start(), query.start()
    winners = run.write(1)
    former.pause()
    run.commit(1, winners)
    winners = replay.write(1)
    client = client_of(former.bootstrap_servers)
    driver = RunDriver(replay, client)
    timer = threading.Timer(ASKED_SECONDS, former.resume)
    timer.start()
    told.clear()
    try:
        driver.commit(replay.batch(1), winners)
    finally:
        timer.join()
        client.close()


def test_a_driver_that_asks_a_former_coordinator_writes_nothing_twice(
    trial: Trial, all_brokers: LocalKafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int | None] = []
    read = DecisionStore.last_decisions

    async def lasts(decisions: DecisionStore, *where: object, **how: object) -> object:
        found = await read(decisions, *where, **how)  # type: ignore[arg-type]
        told.append(found.stored[0].decision.batch.batch_id if found.stored else None)
        return found

    all_brokers.create_topic(topic, PARTITIONS)
    written: set[bytes] = set()
    rounds = old = 0
    while rounds < trial.rounds:
        query = query_with_two_coordinators(all_brokers, topic, written)
        with monkeypatch.context() as patch:
            patch.setattr(DecisionStore, "last_decisions", lasts)
            replay_at_former_coordinator(all_brokers, query, told)
        old += told[-1] == 0
        rounds += 1
        make_whole(all_brokers, topic)
    verdict = judge(found_by_confluent(query.servers, topic, PARTITIONS), written)
    trial.report(
        "former coordinator",
        f"{rounds} drivers started again at a broker that had stood still; {old} old answers",
        f"lost: {verdict.lost}; doubled: {verdict.doubled}",
    )
    assert verdict.is_good, verdict
    assert not old, "an offset that the former coordinator cannot take comes before each read"
