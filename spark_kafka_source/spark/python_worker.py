"""The work of an executor's Python worker before each task."""

import gc
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from spark_kafka_source.records.freed_memory import keep_freed_memory

if TYPE_CHECKING:  # A worker that reads has no use for a producer.
    from spark_kafka_source.fetch import FetchConfig
    from spark_kafka_source.producer import ProducerConfig

C = TypeVar("C", "FetchConfig", "ProducerConfig")

RACK = "SPARK_KAFKA_SOURCE_RACK"
"""The environment variable with the rack (or zone) of an executor."""


class FrozenImports:
    """Keep imported objects out of garbage collection: Spark runs a full one after every task."""

    def __init__(self) -> None:
        self._module_count = 0

    def freeze(self) -> None:
        """Freeze all objects, if modules have been imported since the last call."""
        if not self._module_count:
            keep_freed_memory()
        if len(sys.modules) != self._module_count:
            gc.collect()
            gc.freeze()
            self._module_count = len(sys.modules)


frozen_imports = FrozenImports()


def in_this_rack(config: C) -> C:
    """Return the configuration with the executor's rack, unless `kafka.client.rack` is given."""
    return config if config.client_rack else replace(config, client_rack=os.environ.get(RACK, ""))
