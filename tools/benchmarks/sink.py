"""Cost of writing a row from Spark, against Spark's own connector, and of small micro-batches.

    python -m tools.benchmarks.sink [--only rows,micro-batches,memory] [--rows N] [--runs N]
                                    [--partitions 8,1] [--codec lz4] [--batches N] [--turns N]
                                    [--tasks 4,16,64] [--gigabytes N] [--page FILE]

*rows*: a cached DataFrame with keys of 10 bytes and JSON values of 150 goes to topics of 8
partitions and of one. Prints nanoseconds per row: Spark's processor time (its JVM and its Python
workers), the broker's, and the elapsed time. Compares the elapsed time with the peer, at its
defaults and tuned, and the processor time, the broker's included: median (least-most) of the turns.
*thrown away* is a sink in Python that does nothing with its rows.

*micro-batches*: with 4, 16 and 64 tasks of 10 rows each. Prints the median milliseconds of
`addBatch`, and in brackets of the whole `triggerExecution`. Then prints the difference to at least
once.

*memory*: the resident memory of a process that writes so many GiB like a worker's task. Prints the
peak above the memory of the imports, in each eighth of the rows.
"""

import argparse
import gc
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_kafka_source.spark import KafkaDataSource
from spark_kafka_source.testing import LocalKafka
from tools.benchmarks import sinks
from tools.benchmarks.costs import Costs, metered, nanoseconds, ratio, seconds, with_ended
from tools.benchmarks.page import add_page, publish, table
from tools.benchmarks.produce import TUNED, new_topic
from tools.benchmarks.session import broker, session
from tools.benchmarks.sinks import THROWN_AWAY
from tools.benchmarks.sources import CEILING, PEER
from tools.benchmarks.topics import json_value
from tools.benchmarks.trickle import WARM_UP, Took, wait_for_batches

OURS, EXACT, PEER_TUNED = "pykafka", "pykafka, exactly once", "kafka, tuned"
HEAD = (
    "partitions", "sink", "Spark ns", "broker ns", "passed ns", "passed x", "tuned x",
    "both / peer", "both / tuned",
)  # fmt: skip
BATCHES_HEAD = (
    "tasks, rows of each", "sink", "addBatch ms (trigger ms)", "/ thrown away", "more than pykafka",
)  # fmt: skip
MEMORY_HEAD = ("what", *(f"{n}/8" for n in range(1, 9)))

ROWS_OF_A_TASK = 10
VALUE_BYTES = 150
LARGE_VALUE_BYTES = 1_000
_MIB = 1 << 20
_SPARK_PARTITIONS = 4
_KEY = "lpad(cast(pmod(xxhash64(id), 10000000000) as string), 10, '0')"
_EVENT = (
    """concat('{"id": ', id, ', "user": "user-', pmod(hash(id), 100000), '", "action": "', """
    """element_at(array('click', 'view', 'buy', 'leave'), 1 + pmod(hash(id, 1), 4)), """
    """'", "ts": ', 1700000000000 + id, ', "note": "', sha2(cast(id as string), 512))"""
)


@dataclass(frozen=True, slots=True)
class Case:
    """Number of rows, partitions of the topic, and codec."""

    rows: int
    partitions: int
    codec: str = "lz4"


def main() -> None:
    arguments = _arguments()
    for name in arguments.only.split(","):
        lines = _SECTIONS[name](arguments)
        publish(name, f"tools.benchmarks.sink --only {name}", lines, arguments.page)


# -- rows ------------------------------------------------------------------------------------------


def _rows(arguments: argparse.Namespace) -> Iterator[str]:
    spark = _session()
    found: list[list[str]] = []
    with broker() as kafka:
        frame = events(spark, arguments.rows)
        for partitions in map(int, arguments.partitions.split(",")):
            case = Case(arguments.rows, partitions, arguments.codec)
            found += cells(case, measure(spark, kafka, frame, case, arguments.runs))
    spark.stop()
    return table(HEAD, found)


def events(spark: SparkSession, rows: int) -> DataFrame:
    """Return distinct rows, kept in memory."""
    value = f"concat(substring({_EVENT}, 1, {VALUE_BYTES - 2}), '\"}}')"
    frame = spark.range(0, rows, 1, _SPARK_PARTITIONS).select(
        expr(_KEY).cast("binary").alias("key"), expr(value).cast("binary").alias("value")
    )
    frame.persist().count()
    return frame


def measure(
    spark: SparkSession, kafka: LocalKafka, frame: DataFrame, case: Case, runs: int = 5
) -> Costs:
    """Run each sink. Return the costs of its runs."""
    plain = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "kafka.compression.type": case.codec,
    }
    tuned = {f"kafka.{name}": str(value) for name, value in TUNED.items()}
    ways: dict[str, tuple[str, Mapping[str, str]]] = {
        PEER: (PEER, plain),
        PEER_TUNED: (PEER, plain | tuned),
        OURS: (OURS, plain),
        EXACT: (OURS, plain | {"deliveryGuarantee": "exactly-once"}),
        THROWN_AWAY: (THROWN_AWAY, plain),
    }

    def run(name: str, topic: str) -> None:
        sink, options = ways[name]
        writing = frame.write.format(sink).options(**options, topic=topic)
        writing.mode("append").save()

    # The marker of a transaction takes an offset, too.
    rows = dict.fromkeys((PEER, PEER_TUNED, OURS), case.rows) | {THROWN_AWAY: 0}
    return metered(
        {name: partial(run, name) for name in ways},
        runs,
        topics=lambda name: new_topic(kafka, case.partitions, rows.get(name)),
        client=partial(_used, spark),
        kafka=kafka,
    )


def cells(case: Case, costs: Costs) -> Iterator[list[str]]:
    """Rows of the table, under `HEAD`."""
    for name, runs in costs.items():
        own = [nanoseconds(runs, case.rows, each) for each in ("client", "broker", "passed")]
        faster = [str(ratio(costs, each, name, "passed")) for each in (PEER, PEER_TUNED)]
        part = [str(ratio(costs, name, each, "both")) for each in (PEER, PEER_TUNED)]
        yield [str(case.partitions), name, *own, *faster, *part]


def _used(spark: SparkSession) -> float:
    """Return the processor time of Spark's JVM and of its children, the Python workers."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    java = psutil.Process(gateway.proc.pid)
    return seconds(java) + sum(map(with_ended, java.children(recursive=True)))


# -- micro-batches ---------------------------------------------------------------------------------


def _micro_batches(arguments: argparse.Namespace) -> Iterator[str]:
    spark = _session()
    cells: list[list[str]] = []
    with broker() as kafka:
        for tasks in map(int, arguments.tasks.split(",")):
            turns = arguments.batches, arguments.turns
            cells += batch_cells(tasks, measure_batches(spark, kafka, tasks, turns))
    spark.stop()
    return table(BATCHES_HEAD, cells)


def measure_batches(
    spark: SparkSession, kafka: LocalKafka, tasks: int, batches_and_turns: tuple[int, int]
) -> dict[str, list[Took]]:
    """Run the sinks in turn. Return the durations of `turns` times `batches` micro-batches each."""
    options: dict[str, tuple[str, Mapping[str, str]]] = {
        PEER: (PEER, {}),
        OURS: (OURS, {}),
        EXACT: (OURS, {"deliveryGuarantee": "exactly-once"}),
        THROWN_AWAY: (THROWN_AWAY, {}),
    }
    found: dict[str, list[Took]] = {name: [] for name in options}
    order = list(options)
    batches, turns = batches_and_turns
    for turn in range(turns):
        random.Random(turn).shuffle(order)
        for name in order:
            with new_topic(kafka, tasks, None) as topic:
                sink, given = options[name]
                to = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic, **given}
                found[name] += _run_batches(spark, sink, to, (tasks, batches))
    return found


def batch_cells(tasks: int, found: Mapping[str, list[Took]]) -> Iterator[list[str]]:
    """Return rows of the table, under `BATCHES_HEAD`."""
    adding, whole = (
        {
            name: statistics.median(getattr(each, what) for each in took)
            for name, took in found.items()
        }
        for what in ("adding", "whole")
    )
    for name in found:
        took = f"{adding[name]:.0f} ({whole[name]:.0f})"
        beside = f"{adding[name] / adding[THROWN_AWAY]:.2f}"
        more = f"{adding[name] - adding[OURS]:+.0f} ({whole[name] - whole[OURS]:+.0f})"
        yield [f"{tasks}, {ROWS_OF_A_TASK}", name, took, beside, more if name == EXACT else ""]


def _run_batches(
    spark: SparkSession, sink: str, options: Mapping[str, str], tasks_and_batches: tuple[int, int]
) -> list[Took]:
    tasks, batches = tasks_and_batches
    ready = {"partitions": tasks, "rows": ROWS_OF_A_TASK, "valueBytes": VALUE_BYTES}
    rows = spark.readStream.format(CEILING).options(**ready).load().select("key", "value")
    with tempfile.TemporaryDirectory() as checkpoint:
        writing = rows.writeStream.format(sink).options(**options)
        query = writing.option("checkpointLocation", checkpoint).start()
        try:
            wait_for_batches(query, WARM_UP + batches)
            progress = [each for each in query.recentProgress if each["numInputRows"]]
        finally:
            query.stop()
    durations = [each["durationMs"] for each in progress[WARM_UP:]]
    return [Took(each["triggerExecution"], each["addBatch"]) for each in durations]


# -- memory ----------------------------------------------------------------------------------------


def _memory(arguments: argparse.Namespace) -> Iterator[str]:
    rows = int(arguments.gigabytes * (1 << 30) / LARGE_VALUE_BYTES)
    found = []
    for partitions in map(int, arguments.partitions.split(",")):
        most = measure_memory(Case(rows, partitions, arguments.codec))
        what = f"{arguments.gigabytes} GiB to {partitions} partitions, MiB"
        found.append([what, *(f"{each:.0f}" for each in most)])
    return table(MEMORY_HEAD, found)


def measure_memory(case: Case) -> list[float]:
    """Return the peak MiB above the start in each eighth of the rows."""
    with (
        broker() as kafka,
        new_topic(kafka, case.partitions, case.rows) as topic,
        # A new process has no spare memory yet. Spare memory would hide the measured growth.
        ProcessPoolExecutor(1, get_context("spawn")) as fresh,
    ):
        return fresh.submit(_write, kafka.bootstrap_servers, topic, case).result()


def _write(servers: str, topic: str, case: Case) -> list[float]:
    """Write rows as a Python worker does for a task. The rows have the form that Spark gives."""
    options = {
        "kafka.bootstrap.servers": servers,
        "kafka.compression.type": case.codec,
        "topic": topic,
    }
    schema = StructType([StructField(name, BinaryType()) for name in ("key", "value")])
    writer = KafkaDataSource(options).writer(schema, False)
    chance = random.Random(1)
    values = [json_value(LARGE_VALUE_BYTES, n, chance) for n in range(10_000)]
    keys = [b"%010d" % chance.randrange(10**10) for _ in values]
    ready = pa.RecordBatch.from_pydict({"key": keys, "value": values})
    del values, keys
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    most = [0.0] * 8

    def batches() -> Iterator[pa.RecordBatch]:
        for written in range(0, case.rows, ready.num_rows):
            eighth = written * 8 // case.rows
            most[eighth] = max(most[eighth], (process.memory_info().rss - before) / _MIB)
            count = min(ready.num_rows, case.rows - written)
            # Spark hands over a copy of each batch, too.
            yield ready.take(pa.array(range(count), pa.int32()))

    assert writer.write(batches()).row_count == case.rows
    return most


_SECTIONS: Mapping[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "rows": _rows,
    "micro-batches": _micro_batches,
    "memory": _memory,
}


def _session() -> SparkSession:
    spark = session()
    sinks.register(spark)
    return spark


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(_SECTIONS))
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--partitions", default="8,1", help="of the topics")
    parser.add_argument("--codec", default="lz4")
    parser.add_argument("--batches", type=int, default=20, help="micro-batches of each turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tasks", default="4,16,64", help="of a micro-batch")
    parser.add_argument("--gigabytes", type=float, default=4)
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
