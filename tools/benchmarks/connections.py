"""Connections that a query holds to each broker, by kind of process.

    python -m tools.benchmarks.connections [--workers 4] [--brokers 3] [--partitions 24]

A stream reads all partitions with so many Python workers at once. Prints how many connections each
process has to each broker: the most, and how many processes have any.
"""

import argparse
import socket
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress

import psutil
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source import KafkaProducer
from spark_kafka_source.testing import LocalKafka

ROWS, SECONDS = 2_400, 20.0


def main() -> None:
    given = _arguments()
    with LocalKafka(given.brokers) as kafka:
        kafka.create_topic("t", partitions=given.partitions, replication_factor=1)
        spark = (
            SparkSession.builder.master(f"local[{given.workers}]")
            .config("spark.ui.enabled", "false")
            .config("spark.log.level", "OFF")
            .config("spark.python.unix.domain.socket.enabled", "true")
            .getOrCreate()
        )
        spark_kafka_source.register(spark)
        for name, found in measure(spark, kafka, given.partitions).items():
            print(f"{name:10} {len(found)} processes, the most to one broker {max(found)}")
        spark.stop()


def measure(spark: SparkSession, kafka: LocalKafka, partitions: int) -> dict[str, list[int]]:
    """Return for each process with connections the most it has to one broker, by kind."""
    ports = {int(each.rpartition(":")[2]) for each in kafka.bootstrap_servers.split(",")}
    most: dict[int, int] = defaultdict(int)
    kinds: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            spark.readStream.format("pykafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
            .option("subscribe", "t")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .start()
        )
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            until_seconds = time.monotonic() + SECONDS
            while time.monotonic() < until_seconds:
                for number in range(ROWS):
                    producer.send("t", b"x", partition=number % partitions)
                producer.flush()
                for process in psutil.Process().children(recursive=True):
                    with suppress(psutil.Error):  # It may have ended.
                        kinds[process.pid] = _kind(process)
                        most[process.pid] = max(most[process.pid], _most(process, ports))
        query.stop()
    found: dict[str, list[int]] = defaultdict(list)
    for pid, count in most.items():
        if count:
            found[kinds[pid]].append(count)
    return found


def _most(process: psutil.Process, ports: set[int]) -> int:
    found = process.net_connections("tcp")
    there = [each for each in found if each.status == psutil.CONN_ESTABLISHED and each.raddr]
    counts = Counter(each.raddr.port for each in there if each.family == socket.AF_INET)
    return max((counts[port] for port in ports), default=0)


def _kind(process: psutil.Process) -> str:
    return "worker" if "pyspark.daemon" in " ".join(process.cmdline()) else "driver"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=24)
    return parser.parse_args()


if __name__ == "__main__":
    main()
