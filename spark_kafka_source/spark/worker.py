"""The work of an executor's Python worker before each task."""

import gc
import sys

from spark_kafka_source.records.freed_memory import keep_freed_memory


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
