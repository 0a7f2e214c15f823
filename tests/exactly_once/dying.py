"""Drivers that die within this process at a step of a commit."""

from collections.abc import Callable

from spark_kafka_source.exactly_once.two_phase import Step


class CrashError(Exception):
    """The test has ended the driver."""


def dies_at(step: Step) -> Callable[[Step], None]:
    """Return a listener of a commit's steps. It ends the driver at this step."""

    def reached(found: Step) -> None:
        if found is step:
            raise CrashError

    return reached
