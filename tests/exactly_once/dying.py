"""Listeners for a step of a commit: there the driver dies, or a test calls its function."""

from collections.abc import Callable

import pytest

from spark_kafka_source.producer import PreparedTransaction
from tests.exactly_once.query import Run
from tests.exactly_once.steps import Step


class CrashError(Exception):
    """The test has ended the driver."""


def at(step: Step, do: Callable[[], object]) -> Callable[[Step], None]:
    """Return a listener of a commit's steps. It calls `do` at this step."""

    def reached(found: Step) -> None:
        if found is step:
            do()

    return reached


def dies_at(step: Step) -> Callable[[Step], None]:
    """Return a listener of a commit's steps. It ends the driver at this step."""

    def die() -> None:
        raise CrashError

    return at(step, die)


def decided(run: Run, batch_id: int = 0, tasks: int = 2) -> list[PreparedTransaction]:
    """Run a micro-batch whose driver dies after its decision. Return its transactions."""
    winners = run.write(batch_id, tasks)
    with pytest.raises(CrashError):
        run.commit(batch_id, winners, dies_at(Step.DECIDED))
    return winners
