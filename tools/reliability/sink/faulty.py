"""The data source with writers that fail, are killed or dawdle at random."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from threading import Thread

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from spark_kafka_source.spark.data_source import KafkaDataSource
from spark_kafka_source.spark.sink import writer
from spark_kafka_source.spark.sink.guarantee import Written
from spark_kafka_source.spark.sink.writer import KafkaWriter

FORMAT = "faulty_pykafka"
OPTION = "faults"

_LAST_ATTEMPT = 2
_SMALL_BYTES = 500
_LATEST_SECONDS = 0.3
# Longer than other tasks take, so that Spark also runs the task at another executor.
_DAWDLES_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of tasks and of the driver."""

    seed: str
    tasks: float = 0.0
    """The share of attempts that fail or are killed, half way or at the very end."""
    dawdlers: float = 0.0
    commits: float = 0.0
    """The share of commits in which the whole driver is killed."""
    group: int = 0
    """The process group of the driver."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class FaultyWriter(KafkaWriter):
    faults: Faults

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        vars(writer)["GATHERED_BYTES"] = _SMALL_BYTES  # Rows must be sent before the fault.
        context = TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        chance = Random(f"{self.faults.seed}-{context.taskAttemptId()}")
        fails = attempt < _LAST_ATTEMPT and chance.random() < self.faults.tasks
        half_way = chance.random() < 0.5
        end = chance.choice([_fail, _die])
        written = super().write(_until(iterator, chance, end) if fails and half_way else iterator)
        if attempt == 0 and chance.random() < self.faults.dawdlers:
            time.sleep(_DAWDLES_SECONDS)
        if fails and not half_way:
            end()
        return written

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803 - Spark's name
    ) -> None:
        chance = Random(f"{self.faults.seed}-{batchId}-{os.getpid()}-{time.monotonic()}")
        if self.faults.group and chance.random() < self.faults.commits:
            delay_seconds = chance.uniform(0, _LATEST_SECONDS)
            Thread(target=_end_driver, args=[self.faults.group, delay_seconds]).start()
        super().commit(messages, batchId)


def _until(
    batches: Iterator[pa.RecordBatch], chance: Random, end: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """Yield some rows of the first batch, and then call `end`."""
    for batch in batches:
        some = chance.randint(0, batch.num_rows)
        if some:
            yield batch.slice(0, some)
        break
    end()


class _OnPurposeError(Exception):
    """The error of a task that fails here."""


def _fail() -> None:
    raise _OnPurposeError("on purpose")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _end_driver(group: int, delay_seconds: float) -> None:
    time.sleep(delay_seconds)
    os.killpg(group, signal.SIGKILL)


class FaultyDataSource(KafkaDataSource):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__({name: options[name] for name in options if name.lower() != OPTION})
        self._faults = Faults(**json.loads(options[OPTION]))

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _writer(self, schema: StructType) -> KafkaWriter:
        found = super()._writer(schema)
        found.__class__ = FaultyWriter
        assert isinstance(found, FaultyWriter)
        found.faults = self._faults
        return found
