"""The README's example: results and the offsets they come from, in one transaction of SQLite.

Run as a program it counts words until it is killed, or has nothing to read for a while:
`python -m tests.consumer.exactly_once servers topic partitions database [group]`.
"""

import sqlite3
import sys
from collections.abc import Collection
from contextlib import closing

from spark_kafka_source import (
    ConsumerRebalanceListener,
    ConsumerRecords,
    KafkaConsumer,
    TopicPartition,
)

TABLES = """
CREATE TABLE IF NOT EXISTS counts (word BLOB PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS offsets (
    topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
);
"""
_IDLE_POLLS = 6


def connect(path: str) -> sqlite3.Connection:
    """The database, with its tables."""
    database = sqlite3.connect(path, timeout=30)
    database.executescript(TABLES)
    return database


def seek_to_stored(
    consumer: KafkaConsumer,
    database: sqlite3.Connection,
    partitions: Collection[TopicPartition],
) -> None:
    """Goes on after what is in the database, whatever is committed in Kafka."""
    stored = {
        TopicPartition(topic, partition): offset
        for topic, partition, offset in database.execute("SELECT * FROM offsets")
    }
    for each in partitions:
        consumer.seek(each, stored.get(each, 0))


class AnotherHasStoredError(Exception):
    """Some of these records are in the database already: another had the partition meanwhile."""


def store(database: sqlite3.Connection, records: ConsumerRecords) -> None:
    """Counts the words and notes where to go on, both or neither.

    One that did not poll for so long that others got its partitions does not know it yet, and no
    broker is asked here: so what is stored must not reach beyond where these records begin.
    """
    with database:  # One transaction.
        for record in records:
            database.execute(
                "INSERT INTO counts VALUES (?, 1) "
                "ON CONFLICT (word) DO UPDATE SET number = number + 1",
                [record.value],
            )
        for where, after in records.next_offsets.items():
            stored = database.execute(
                "INSERT INTO offsets VALUES (?, ?, ?) ON CONFLICT (topic, partition) "
                "DO UPDATE SET next = excluded.next WHERE next <= ?",
                [*where, after.offset, records.first_offset(where)],
            )
            if not stored.rowcount:
                raise AnotherHasStoredError(where)


class SeekToStored(ConsumerRebalanceListener):
    """For a consumer that subscribes: what it is given goes on after what is in the database."""

    def __init__(self, consumer: KafkaConsumer, database: sqlite3.Connection) -> None:
        self._consumer, self._database = consumer, database

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Seeks; what is revoked needs nothing, since all that was polled is stored."""
        seek_to_stored(self._consumer, self._database, partitions)


def main(servers: str, topic: str, partitions: str, path: str, group: str = "") -> None:
    """Counts until there is nothing to read."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",  # Where what is stored is no longer in the log.
        max_poll_records=7,
        session_timeout_ms=1_000,
        heartbeat_interval_ms=100,
    )
    with closing(connect(path)) as database, consumer:
        if group:
            consumer.subscribe([topic], listener=SeekToStored(consumer, database))
        else:
            assigned = [TopicPartition(topic, each) for each in range(int(partitions))]
            consumer.assign(assigned)
            seek_to_stored(consumer, database, assigned)
        idle_polls = 0
        while idle_polls < _IDLE_POLLS or not consumer.assignment():
            records = consumer.poll(timeout_ms=100)
            idle_polls = 0 if records else idle_polls + 1
            try:
                store(database, records)
            except AnotherHasStoredError:
                mine = consumer.assignment().intersection(records.partitions)
                seek_to_stored(consumer, database, mine)


if __name__ == "__main__":
    main(*sys.argv[1:])
