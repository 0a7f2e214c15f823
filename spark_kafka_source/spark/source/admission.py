"""Spark's admission control, from 4.2 on. Earlier versions get stand-ins to load the reader."""

from dataclasses import dataclass

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
        """A stand-in: these versions never give this limit."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """A stand-in: these versions never give this limit."""

    @dataclass(frozen=True)
    class ReadMaxBytes(ReadLimit):  # type: ignore[no-redef]
        """A stand-in: these versions never give this limit."""

        max_bytes: int

    @dataclass(frozen=True)
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """A stand-in: these versions never give this limit."""

        max_rows: int

    @dataclass(frozen=True)
    class ReadMinRows(ReadLimit):  # type: ignore[no-redef]
        """A stand-in: these versions never give this limit."""

        min_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A stand-in: in these versions `AvailableNow` reads all rows in one micro-batch."""


SINCE = "4.2"
"""The first version of Spark with admission control for Python data sources."""

__all__ = [
    "HAS_ADMISSION_CONTROL",
    "SINCE",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
]
