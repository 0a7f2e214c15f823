"""Threads and connections of a client that has nothing to do.

    python -m tools.benchmarks.resting [--brokers 3] [--seconds 15]

Each client is the only one of its process. It works with all brokers, and then rests. Prints the
names of its Python threads, the main thread included, and its number of connections to brokers.
The query's driver is the Python process that plans its micro-batches. Its threads are counted by
the system, with those of libraries.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

import psutil
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer
from spark_kafka_source.testing import LocalKafka

TOPIC, PARTITIONS = "t", 6


def main() -> None:
    given = _arguments()
    if given.client:
        print(_rest(given.client, given.servers, given.seconds))
        return
    with LocalKafka(given.brokers) as kafka:
        kafka.create_topic(TOPIC, PARTITIONS, replication_factor=1)
        for client in CLIENTS:
            command = [sys.executable, "-m", "tools.benchmarks.resting", "--client", client]
            more = ["--servers", kafka.bootstrap_servers, "--seconds", str(given.seconds)]
            found = subprocess.run([*command, *more], check=True, stdout=subprocess.PIPE, text=True)
            print(f"{client:20} {found.stdout.strip()}", flush=True)
        for process in _of_a_query(kafka, given.seconds):
            print(f"{'a query':20} {process}", flush=True)


@contextmanager
def _consumer(servers: str, protocol: str = "classic") -> Iterator[Callable[[], object]]:
    with KafkaConsumer(
        bootstrap_servers=servers, group_id="g", group_protocol=protocol
    ) as consumer:
        consumer.subscribe([TOPIC])
        yield lambda: consumer.poll(100)


@contextmanager
def _producer(servers: str) -> Iterator[Callable[[], object]]:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for partition in range(PARTITIONS):
            producer.send(TOPIC, b"x", partition=partition)
        producer.flush()
        yield lambda: time.sleep(0.1)


@contextmanager
def _admin(servers: str) -> Iterator[Callable[[], object]]:
    with KafkaAdmin(bootstrap_servers=servers) as admin:
        admin.describe_topics([TOPIC])
        admin.held_up([TOPIC])
        admin.list_groups()
        yield lambda: time.sleep(0.1)


CLIENTS: Mapping[str, Callable[[str], AbstractContextManager[Callable[[], object]]]] = {
    "consumer, classic": _consumer,
    "consumer, KIP-848": partial(_consumer, protocol="consumer"),
    "producer": _producer,
    "admin": _admin,
}


def _rest(client: str, servers: str, seconds: float) -> str:
    until_seconds = time.monotonic() + seconds
    with CLIENTS[client](servers) as rest:
        while time.monotonic() < until_seconds:
            rest()
        names = sorted(re.sub(r"\d+", "N", each.name) for each in threading.enumerate())
        connections = _connections(psutil.Process(), servers)
        return f"{len(names)} threads {names}, {connections} connections"


def _of_a_query(kafka: LocalKafka, seconds: float) -> list[str]:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark_kafka_source.register(spark)
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            spark.readStream.format("pykafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .start()
        )
        query.processAllAvailable()
        time.sleep(seconds)
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # It may have ended.
                connections = _connections(process, kafka.bootstrap_servers)
                if "pyspark" in " ".join(process.cmdline()) and connections:
                    kind = "worker" if "pyspark.daemon" in process.cmdline() else "driver"
                    threads = process.num_threads()
                    found.append(f"{kind}: {threads} threads, {connections} connections")
        query.stop()
    spark.stop()
    return found


def _connections(process: psutil.Process, servers: str) -> int:
    ports = {int(each.rpartition(":")[2]) for each in servers.split(",")}
    found = process.net_connections("tcp")
    there = [each for each in found if each.status == psutil.CONN_ESTABLISHED and each.raddr]
    return sum(each.raddr.port in ports for each in there)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--servers", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
