"""A `KafkaProducer` on brokers with faults: see `tools.reliability.writing`."""

from collections.abc import Iterator
from functools import reduce
from operator import add
from random import Random

import pytest

from tests.reliability.conftest import Trial
from tools.reliability.writing.cluster import Cluster, three_brokers
from tools.reliability.writing.faults import FAULTS
from tools.reliability.writing.rounds import run_round

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.long]

EVERY_DAY = ("brokers killed and started again", "connections cut before an answer")
# The others are made by `python -m tools.reliability.writing`.
ROUNDS_ONE_STANDS_FOR = 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with three_brokers(Random()) as cluster:
        yield cluster


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(each, marks=() if each in EVERY_DAY else pytest.mark.reliability_full)
        for each in FAULTS
    ],
)
def test_nothing_acknowledged_is_lost(
    cluster: Cluster, trial: Trial, fault: str, idempotent: bool
) -> None:
    """With idempotence nothing is doubled, and the order within a partition stays."""
    cluster.chance.seed(trial.chance.random())
    rounds = max(1, trial.rounds // ROUNDS_ONE_STANDS_FOR)
    outcomes = [run_round(cluster, fault, idempotent=idempotent) for _ in range(rounds)]
    outcome = reduce(add, outcomes)
    verdict = outcome.verdict
    trial.report(
        "written once" if idempotent else "written",
        f"{fault}: {outcome.faults} times in {outcome.rounds} rounds, "
        f"{verdict.acknowledged} records acknowledged",
        str(verdict),
    )
    assert verdict.acknowledged
    assert outcome.faults
    assert (verdict.lost, verdict.misplaced, verdict.failed) == (0, 0, 0)
    if idempotent:
        assert (verdict.doubled, verdict.out_of_order) == (0, 0)
