"""The example of clients-in-detail.md: results and their offsets in one transaction of SQLite.

As a program it counts words until it is killed, or until the words of all partitions are counted:
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


def connect(path: str) -> sqlite3.Connection:
    """Return the database, with its tables."""
    database = sqlite3.connect(path, timeout=30)
    database.executescript(TABLES)
    return database


def next_offsets(database: sqlite3.Connection) -> dict[TopicPartition, int]:
    """Return the stored offsets of the next records."""
    rows = database.execute("SELECT * FROM offsets")
    return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}


def seek_to_stored(
    consumer: KafkaConsumer,
    database: sqlite3.Connection,
    partitions: Collection[TopicPartition],
) -> None:
    """Seek to the offsets in the database. Offsets committed in Kafka do not matter."""
    stored = next_offsets(database)
    for each in partitions:
        consumer.seek(each, stored.get(each, 0))


class AnotherHasStoredError(Exception):
    """Another process had the partition meanwhile, and has stored some of these records."""


def store(database: sqlite3.Connection, records: ConsumerRecords) -> None:
    """Store word counts and next offsets in one transaction.

    After a long time without a poll, others may own the partitions, and this process does not know
    it: it asks no broker here. So the stored offsets must not be beyond the first of these records.
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
    """A listener for a consumer that subscribes: new partitions go on at the database's offsets."""

    def __init__(self, consumer: KafkaConsumer, database: sqlite3.Connection) -> None:
        self._consumer, self._database = consumer, database

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Seek. A revocation needs nothing, since all polled records are stored."""
        seek_to_stored(self._consumer, self._database, partitions)


def main(servers: str, topic: str, partitions: str, path: str, group: str = "") -> None:
    """Count words until those of all partitions are counted, by this process or by others."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",  # For stored offsets that are no longer in the log.
        max_poll_records=7,
        session_timeout_ms=1_000,
        heartbeat_interval_ms=100,
    )
    everything = [TopicPartition(topic, each) for each in range(int(partitions))]
    with closing(connect(path)) as database, consumer:
        if group:
            consumer.subscribe([topic], listener=SeekToStored(consumer, database))
        else:
            consumer.assign(everything)
            seek_to_stored(consumer, database, everything)
        ends = consumer.end_offsets(everything)
        while next_offsets(database) != ends:
            records = consumer.poll(timeout_ms=100)
            try:
                store(database, records)
            except AnotherHasStoredError:
                mine = consumer.assignment().intersection(records.partitions)
                seek_to_stored(consumer, database, mine)


if __name__ == "__main__":
    main(*sys.argv[1:])
