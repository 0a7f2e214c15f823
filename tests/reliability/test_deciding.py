"""Processes and brokers fail while a driver decides, and others end its transactions.

Each row is there once, or an error names it. `python -m tools.reliability.deciding` makes many
rounds, and writes the table.
"""

import pytest

from tests.reliability.conftest import Trial
from tools.reliability.deciding.faults import brokers, drawn, make

pytestmark = [pytest.mark.kafka, pytest.mark.long]
_LEAST_ROUNDS = 3


def test_each_row_is_there_once_or_named(trial: Trial) -> None:
    with brokers() as (kafka, gates):
        outcomes = []
        for _ in range(max(_LEAST_ROUNDS, trial.rounds)):
            seed = trial.chance.getrandbits(32)
            print(seed, *drawn(seed), sep="\n    ")
            outcomes.append(make(kafka, gates, seed, drawn(seed)))
            print(outcomes[-1])
    wrong = [each for each in outcomes if not each.is_good]
    trial.report(
        "decided",
        f"{len(outcomes)} rounds in which processes and brokers fail at a step of a commit, and "
        "others end its transactions",
        f"rows that errors name as lost: {sum(each.named for each in outcomes)}; "
        f"rounds with other rows lost, with rows doubled, or held up: {len(wrong)}",
    )
    assert not wrong
