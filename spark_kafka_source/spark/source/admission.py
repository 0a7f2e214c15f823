"""Spark's admission control, from 4.2 on. For Spark 4.0 and 4.1 the same limits, without Spark."""

from dataclasses import dataclass
from enum import Enum

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    HAS_ADMISSION_CONTROL = True
except ImportError:  # Spark 4.0 and 4.1
    HAS_ADMISSION_CONTROL = False

    class ReadLimit:  # type: ignore[no-redef]
        """A limit of a micro-batch."""

    @dataclass(frozen=True)
    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """No limit."""

    @dataclass(frozen=True)
    class ReadMaxBytes(ReadLimit):  # type: ignore[no-redef]
        """At most so many bytes."""

        max_bytes: int

    @dataclass(frozen=True)
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """At most so many rows."""

        max_rows: int

    @dataclass(frozen=True)
    class ReadMinRows(ReadLimit):  # type: ignore[no-redef]
        """At least so many rows."""

        min_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing: these versions make one micro-batch of a run with `Trigger.AvailableNow`."""


class LimitsWithAvailableNow(Enum):
    """The values of `limitsWithAvailableNow`: of what a start before Spark 4.2 warns."""

    WARN = "of records that the only, limited micro-batch of the last run has left"
    ACCEPT = "of none"

    def __str__(self) -> str:
        return self.name.lower()


__all__ = [
    "HAS_ADMISSION_CONTROL",
    "LimitsWithAvailableNow",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
]
