"""Results and offsets in one transaction, by a process that is killed repeatedly."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer import exactly_once
from tests.consumer.consumers import fill

PARTITIONS, RECORDS, KILLS = 2, 3_000, 10


def begin(servers: str, database: Path, group: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.consumer.exactly_once"]
    return subprocess.Popen([*command, servers, "t", str(PARTITIONS), str(database), group])


def counted(database: Path) -> dict[bytes, int]:
    with closing(sqlite3.connect(database, timeout=30)) as opened:
        try:
            return dict(opened.execute("SELECT * FROM counts"))
        except sqlite3.OperationalError:  # The process was killed before it created the table.
            return {}


@pytest.mark.long
def test_each_record_counts_once_whatever_is_killed(tmp_path: Path) -> None:
    """The process sometimes assigns its partitions, and sometimes subscribes to them."""
    database = tmp_path / "counts.db"
    chance = random.Random(7)
    with MemoryBroker() as broker:
        broker.held_step_seconds = 0.01
        broker.create_topic("t", PARTITIONS)
        address = broker.address()
        servers = f"{address.host}:{address.port}"
        mid_way = 0
        for round_number in range(KILLS):
            # Each process has records of its own: else a process that is killed late could leave
            # nothing to those after it.
            for partition in range(PARTITIONS):
                fill(broker, TopicPartition("t", partition), RECORDS // PARTITIONS // KILLS // 10)
            before = counted(database)
            process = begin(servers, database, group="g" * (round_number % 2))
            while counted(database) == before and process.poll() is None:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.02)
            process.kill()  # It may have ended by itself.
            is_killed = process.wait() == -signal.SIGKILL
            filled = (round_number + 1) * RECORDS // KILLS
            mid_way += is_killed and sum(counted(database).values()) < filled
        assert mid_way > 0, "it was to be killed in the midst of it"
        with begin(servers, database, group="g") as process:
            assert process.wait(timeout=300) == 0
    each = RECORDS // PARTITIONS
    assert counted(database) == {str(n).encode(): PARTITIONS for n in range(each)}


def test_who_was_replaced_in_silence_stores_nothing(tmp_path: Path) -> None:
    """The old process has polled records. Its successor reads and stores the same records."""
    where = TopicPartition("t", 0)
    with MemoryBroker() as broker:
        broker.create_topic("t", 1)[0].append(*[b"word"] * 5)
        servers = str(broker.address())
        with (
            closing(exactly_once.connect(str(tmp_path / "counts.db"))) as database,
            KafkaConsumer(bootstrap_servers=servers) as late,
            KafkaConsumer(bootstrap_servers=servers) as successor,
        ):
            for consumer in (late, successor):
                consumer.assign([where])
                exactly_once.seek_to_stored(consumer, database, [where])
            held, records = late.poll(10_000), successor.poll(10_000)
            exactly_once.store(database, records)
            with pytest.raises(exactly_once.AnotherHasStoredError):
                exactly_once.store(database, held)
            assert database.execute("SELECT * FROM counts").fetchall() == [(b"word", 5)]
            assert database.execute("SELECT next FROM offsets").fetchall() == [(5,)]
