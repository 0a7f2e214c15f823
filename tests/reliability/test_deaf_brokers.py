"""Silent brokers and addresses, and deleted topics: they cost `KafkaConsumer` seconds.

Where a healthy broker has what is needed, records flow and offsets are committed again within 15 s,
and no `poll(100)` takes longer than 1 s. `python -m tools.reliability.deaf` measures that, beside
other clients. The bounds here leave room for a machine that does much else at the same time. Who
waits for a silent broker exceeds them: a request takes half a minute until its timeout, and a
connection ten seconds.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.testing import LocalKafka
from tests.reliability.conftest import Trial
from tools.reliability.deaf.clients import OURS, OURS_848, Client
from tools.reliability.deaf.deleted import deleted, deleted_under_assign
from tools.reliability.deaf.first_contact import first_contact
from tools.reliability.deaf.frozen import ROLES, frozen
from tools.reliability.deaf.outcome import Outcome
from tools.reliability.deaf.pattern import new_topic
from tools.reliability.deaf.sockets import dropping, silent
from tools.traffic import Events, batch

pytestmark = [pytest.mark.kafka, pytest.mark.long]

RECOVERY_SECONDS = 25.0
POLL_SECONDS = 5.0
PATIENCE_SECONDS = 40.0

BOTH = (OURS, OURS_848)
NOBODYS = pytest.mark.parametrize("nobodys", [dropping, silent])
Address = Callable[[], AbstractContextManager[str]]


def hold(trial: Trial, promise: str, done: str, outcomes: Iterable[Outcome]) -> None:
    """Report the outcome, then check the bounds."""
    wrong: dict[str, list[str]] = {}
    for each in outcomes:
        trial.report(promise, f"{done}: {each.client.name}", str(each))
        wrong |= {each.client.name: each.exceeding(RECOVERY_SECONDS, POLL_SECONDS)}
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("in_group", [True, False], ids=["in a group", "alone"])
@NOBODYS
def test_a_first_address_that_answers_nothing(
    nobodys: Address, in_group: bool, kafka: LocalKafka, trial: Trial
) -> None:
    with nobodys() as address:
        servers = f"{address},{kafka.bootstrap_servers}"
        clients = BOTH if in_group else (OURS,)
        outcomes = first_contact(
            kafka, servers, clients, in_group=in_group, patience_seconds=PATIENCE_SECONDS
        )
    where = "in a group" if in_group else "alone"
    hold(trial, "15", f"the first address is {nobodys.__name__}, a consumer {where}", outcomes)


@NOBODYS
def test_an_admin_whose_first_address_answers_nothing(
    nobodys: Address, kafka: LocalKafka, topic: str, trial: Trial
) -> None:
    kafka.create_topic(topic)
    with nobodys() as address:
        servers = f"{address},{kafka.bootstrap_servers}"
        began = time.monotonic()
        with KafkaAdmin(bootstrap_servers=servers) as admin:
            assert admin.describe_topics([topic])
        seconds = time.monotonic() - began
    trial.report("15", f"the first address is {nobodys.__name__}, KafkaAdmin", f"{seconds:.1f} s")
    assert seconds < RECOVERY_SECONDS


@pytest.mark.spark
@NOBODYS
def test_a_batch_whose_first_address_answers_nothing(
    nobodys: Address, kafka: LocalKafka, topic: str, spark: SparkSession, trial: Trial
) -> None:
    events = Events(kafka, topic)
    events.fill(10, 10)
    assert batch(spark, events.options()).count() == 20  # The first of a session takes its time.
    with nobodys() as address:
        servers = f"{address},{kafka.bootstrap_servers}"
        began = time.monotonic()
        rows = batch(spark, events.options() | {"kafka.bootstrap.servers": servers}).count()
        seconds = time.monotonic() - began
    trial.report("15", f"the first address is {nobodys.__name__}, a batch", f"{seconds:.1f} s")
    assert rows == 20
    assert seconds < RECOVERY_SECONDS


@pytest.mark.parametrize("role", ROLES)
def test_a_broker_that_is_stopped(role: str, all_brokers: LocalKafka, trial: Trial) -> None:
    outcomes = frozen(all_brokers, role, BOTH, PATIENCE_SECONDS)
    hold(trial, "15", f"the {role} stopped by SIGSTOP", outcomes)


@pytest.mark.parametrize("client", BOTH, ids=lambda client: client.protocol)
def test_a_topic_that_is_deleted_under_two_members(
    client: Client, kafka: LocalKafka, trial: Trial
) -> None:
    outcome = deleted(kafka, client, PATIENCE_SECONDS)
    hold(trial, "deleted topic", "one of two topics of two members deleted", [outcome])


def test_a_topic_that_is_deleted_under_a_consumer_of_its_own_partitions(
    kafka: LocalKafka, trial: Trial
) -> None:
    outcome = deleted_under_assign(kafka, OURS, PATIENCE_SECONDS)
    hold(trial, "deleted topic", "one of two topics assigned to a consumer deleted", [outcome])


def test_a_new_topic_of_a_pattern_takes_one_rebalance(kafka: LocalKafka, trial: Trial) -> None:
    """The other members look for topics once a minute, and before they join again."""
    outcome, shares = new_topic(kafka, OURS, PATIENCE_SECONDS)
    trial.report(
        "patterns",
        "a topic of 6 partitions made, which one of three members finds first",
        f"shared among all after {outcome}; shares after each rebalance {shares}",
    )
    assert not outcome.exceeding(RECOVERY_SECONDS, POLL_SECONDS)
    assert shares == [[2, 2, 2]]
