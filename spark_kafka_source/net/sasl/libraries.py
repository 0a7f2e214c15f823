"""Libraries that only some mechanisms need. An extra of this package installs each."""

import importlib
from typing import Any

from spark_kafka_source.errors import ConfigurationError


def library(module: str, *, mechanism: str, package: str, extra: str) -> Any:
    """Return the module. Import it only here, so that other mechanisms do not need it.

    Raises `ConfigurationError` if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigurationError(
            "kafka.sasl.mechanism",
            f"{mechanism} needs the library {package}, which is not installed",
            f"Install 'spark-kafka-source[{extra}]' on the driver and on every executor",
        ) from None
