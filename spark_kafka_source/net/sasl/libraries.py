"""Libraries that only some mechanisms need, and that an extra of this package brings."""

import importlib
from typing import Any

from spark_kafka_source.errors import ConfigurationError


def library(module: str, *, mechanism: str, package: str, extra: str) -> Any:
    """The module, which is imported only here: who uses another mechanism need not have it.

    Raises `ConfigurationError` where it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigurationError(
            "kafka.sasl.mechanism",
            f"{mechanism} needs the library {package}, which is not here",
            f"Install 'spark-kafka-source[{extra}]' on the driver and on every executor",
        ) from None
