"""Memory of a task that reads a large partition, in a Python process that works like a worker.

    python -m tools.benchmarks.memory [--gigabytes N] [--codec lz4]

Prints the resident memory above that of the imports, in each eighth of the partition, in MiB.
"""

import argparse
import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import psutil

from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.offset_arithmetic import LogEnds
from spark_kafka_source.spark.source.tasks import plan_tasks, read_ranges
from spark_kafka_source.topic_partition import TopicPartition
from tools.benchmarks.session import broker
from tools.benchmarks.topics import fill

VALUE_BYTES = 1_000
_MIB = 1 << 20


def main() -> None:
    arguments = _arguments()
    rows = int(arguments.gigabytes * (1 << 30) / VALUE_BYTES)
    print(f"{arguments.gigabytes} GiB in one partition, {arguments.codec}")
    print(" ".join(f"{each:.0f}" for each in measure(rows, arguments.codec)), "MiB")


def measure(rows: int, codec: str) -> list[float]:
    """Return the peak MiB above the start in each eighth of the partition."""
    with broker() as kafka:
        kafka.create_topic("large")
        fill(
            kafka.bootstrap_servers,
            "large",
            rows=rows,
            value_bytes=VALUE_BYTES,
            codec=codec,
            partitions=1,
        )
        # The process that filled the topic has spare memory. This would hide the measured growth.
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            return fresh.submit(_read, kafka.bootstrap_servers, rows).result()


def _read(servers: str, rows: int) -> list[float]:
    options = parse_source_options({"kafka.bootstrap.servers": servers, "subscribe": "large"})
    where = TopicPartition("large", 0)
    (task,) = plan_tasks({where: 0}, LogEnds({where: rows}), options)
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    most = [0.0] * 8
    read = 0
    for batch in read_ranges(task, options):  # type: ignore[arg-type]  # it is one of ours
        read += batch.num_rows
        eighth = min(read * 8 // rows, 7)
        most[eighth] = max(most[eighth], (process.memory_info().rss - before) / _MIB)
    assert read == rows
    return most


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--codec", default="lz4")
    return parser.parse_args()


if __name__ == "__main__":
    main()
