"""What a Python worker of an executor does before each of its tasks, whatever the task does."""

import gc
import sys

from spark_kafka_source.records.freed_memory import keep_freed_memory


class FrozenImports:
    """Spares the collector what imports left: Spark collects in full after every task."""

    def __init__(self) -> None:
        self._module_count = 0

    def freeze(self) -> None:
        """Freeze what there is, where modules have been imported since the last time."""
        if not self._module_count:
            keep_freed_memory()
        if len(sys.modules) != self._module_count:
            gc.collect()
            gc.freeze()
            self._module_count = len(sys.modules)


frozen_imports = FrozenImports()
