"""The work of Spark's Python processes before a task or a question: memory, rack and log."""

import gc
import logging
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, TypeVar

from pyspark import TaskContext

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


class _WorkerLog(logging.StreamHandler[TextIO]):
    """This package's log on standard error, unless the process has a log of its own."""

    query = ""

    def __init__(self) -> None:
        super().__init__()
        form = "%(asctime)s %(levelname)s %(name)s: [%(query)s] %(message)s"
        self.setFormatter(logging.Formatter(form, "%y/%m/%d %H:%M:%S"))  # As Spark's own lines.

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            record.query = _task() or self.query
            super().emit(record)


_worker_log = _WorkerLog()


def log_with_query(query: str = "") -> None:
    """Show time, level and query with the warnings of this Python process, if it is Spark's.

    Spark configures no log there, so that Python would show the texts alone. A task has its query's
    id. Spark does not tell it to the driver's processes, so `query` is what the options tell.
    """
    _worker_log.query = query
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name.startswith("pyspark."):
        logging.getLogger("spark_kafka_source").addHandler(_worker_log)


def _task() -> str:
    context = TaskContext.get()
    if context is None:
        return ""
    query_id = context.getLocalProperty("sql.streaming.queryId")
    task = f"stage {context.stageId()}, task {context.partitionId()}.{context.attemptNumber()}"
    return f"query {query_id}, {task}" if query_id else task
