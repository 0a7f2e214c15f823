"""Brokers are killed or stopped while a driver decides. Each row is there once.

`python -m tools.reliability.deciding` makes each fault at each step, and writes the table.
"""

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import Verdict
from tests.exactly_once.steps import Step
from tests.reliability.conftest import Trial
from tools.reliability.deciding.faults import Fault, Role, Trials

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@pytest.mark.parametrize("role", Role, ids=lambda role: role.name.lower())
def test_a_broker_at_any_step(
    role: Role, all_brokers: LocalKafka, topic: str, trial: Trial
) -> None:
    """Chance picks the fault, and whether the driver dies too."""
    trials = Trials(all_brokers, topic)
    commits = lost = doubled = held_up = 0
    for _ in range(trial.rounds):
        fault = Fault(role, trial.chance.choice(trials.manners), trial.chance.choice(list(Step)))
        outcome = trials.make(fault)
        print(fault, outcome)
        commits += outcome.commit == "returned"
        lost, doubled = lost + outcome.verdict.lost, doubled + outcome.verdict.doubled
        held_up += outcome.verdict.held_up
    trial.report(
        "decided",
        f"{trial.rounds} times the {role.value} killed or stopped at a step of a commit",
        f"commits that went through it: {commits}; rows lost: {lost}; doubled: {doubled}; "
        f"partitions held up in the end: {held_up}",
    )
    assert Verdict(lost, doubled, held_up).is_good
