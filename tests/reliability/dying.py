"""Tasks whose Python worker is killed: `python -m tests.reliability.dying` reads orders as JSON.

The data source is ours, but a worker kills itself after it has handed over some of a task's rows.
Spark tries the task again in another worker, up to the fourth time.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from spark_kafka_source.spark.data_source import KafkaDataSource
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from tools.reliability.driver import session

FORMAT = "dying_pykafka"
OPTION = "deaths"
FOUND = "found.json"
LAST_ATTEMPT = 3
LATEST_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders: repeat reads until `kills` workers were killed. A partition has `rows`."""

    options: dict[str, str]
    partitions: int
    rows: int
    directory: str
    seed: int
    kills: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Deaths:
    """The deaths of workers in one read. `directory` gets a file for each."""

    directory: str
    seed: str
    rows: int

    def during(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the same rows. In half of the tasks the worker dies at some moment among them."""
        context = TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        name = f"{self.seed}-{context.stageId()}-{context.partitionId()}-{attempt}"
        chance = Random(name)
        dies = attempt < LAST_ATTEMPT and chance.random() < 0.5
        left = chance.randrange(self.rows) if dies else sys.maxsize
        death: Thread | None = None
        for batch in batches:
            left -= batch.num_rows
            if left < 0 and death is None:
                # Another thread kills the worker, at whatever this thread does by then.
                Path(self.directory, name).touch()
                death = Thread(target=_die, args=[chance.uniform(0, LATEST_SECONDS)])
                death.start()
            yield batch
        if death is not None:
            death.join()


def _die(after_seconds: float) -> None:
    time.sleep(after_seconds)
    os.kill(os.getpid(), signal.SIGKILL)


class DyingBatchReader(KafkaBatchReader):
    deaths: Deaths

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.deaths.during(super().read(partition))


class DyingStreamReader(KafkaStreamReader):
    deaths: Deaths

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.deaths.during(super().read(partition))


class DyingDataSource(KafkaDataSource):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__({name: options[name] for name in options if name.lower() != OPTION})
        self._deaths = Deaths(**json.loads(options[OPTION]))

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: StructType) -> KafkaBatchReader:
        reader = DyingBatchReader(self._to_read())
        reader.deaths = self._deaths
        return reader

    def streamReader(self, schema: StructType) -> KafkaStreamReader:
        reader = DyingStreamReader(self._to_read())
        reader.deaths = self._deaths
        return reader


class Reads:
    """Reads of all rows again and again, and counts of the faults."""

    def __init__(self, spark: SparkSession, orders: Orders) -> None:
        self._spark, self._orders = spark, orders
        self._written = Counter(
            (partition, offset, b"%d:%d" % (partition, offset))
            for partition in range(orders.partitions)
            for offset in range(orders.rows)
        )

    def until_enough_were_killed(self, kind: str) -> dict[str, int]:
        """Repeat reads of a kind, `batch` or `stream`. Return the counts of reads and faults."""
        found: Counter[str] = Counter(kills=0, reads=0, lost=0, doubled=0)
        directory = Path(self._orders.directory, kind)
        directory.mkdir(parents=True)
        while (kills := len(list(directory.iterdir()))) < self._orders.kills:
            seed = f"{self._orders.seed}-{found['reads']}"
            deaths = Deaths(str(directory), seed, self._orders.rows)
            options = self._orders.options | {OPTION: json.dumps(asdict(deaths))}
            rows: Counter[tuple[Any, ...]] = Counter()
            getattr(self, f"_{kind}")(options, rows, seed)
            found["reads"] += 1
            found["lost"] += (self._written - rows).total()
            found["doubled"] += (rows - self._written).total()
        return dict(found) | {"kills": kills}

    def _batch(self, options: dict[str, str], rows: Counter[tuple[Any, ...]], _: str) -> None:
        keep(rows, self._spark.read.format(FORMAT).options(**options).load())

    def _stream(self, options: dict[str, str], rows: Counter[tuple[Any, ...]], seed: str) -> None:
        limit = str(self._orders.partitions * self._orders.rows // 3)
        query = (
            self._spark.readStream.format(FORMAT)
            .options(**options, maxOffsetsPerTrigger=limit)
            .load()
            .writeStream.foreachBatch(partial(keep, rows))
            .option("checkpointLocation", str(Path(self._orders.directory, f"checkpoint-{seed}")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def keep(rows: Counter[tuple[Any, ...]], frame: DataFrame, _: int = 0) -> None:
    table = frame.select("partition", "offset", "value").toArrow()
    rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))


def main() -> None:
    spark = session(f"local[2,{LAST_ATTEMPT + 1}]")
    spark.dataSource.register(DyingDataSource)
    orders = Orders(**json.loads(sys.stdin.readline()))
    reads = Reads(spark, orders)
    found = {kind: reads.until_enough_were_killed(kind) for kind in ("batch", "stream")}
    Path(orders.directory, FOUND).write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
