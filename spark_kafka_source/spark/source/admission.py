"""Spark's admission control, from 4.2 on; before it, stand-ins that let the same reader load."""

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
        """Never given by these versions."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Never given by these versions."""

    class ReadMaxBytes(ReadLimit):  # type: ignore[no-redef]
        """Never given by these versions."""

        max_bytes: int

    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """Never given by these versions."""

        max_rows: int

    class ReadMinRows(ReadLimit):  # type: ignore[no-redef]
        """Never given by these versions."""

        min_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Not asked for by these versions: `AvailableNow` is one micro-batch with all there is."""


SINCE = "4.2"
"""The version of Spark that brought it."""

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
