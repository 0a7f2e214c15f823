"""Drivers that die within this process, at a step of a commit."""

from collections.abc import Callable

from spark_kafka_source.exactly_once.two_phase import Step


class CrashError(Exception):
    """A driver's end, by the test's hand."""


def dies_at(step: Step) -> Callable[[Step], None]:
    """What is told of each step, and ends the driver at this one."""

    def reached(found: Step) -> None:
        if found is step:
            raise CrashError

    return reached
