"""Members of a group that store results with their offsets in one transaction of PostgreSQL.

`python -m tests.reliability.exactly_once servers group topic database` counts words until SIGTERM.

A member that takes a partition over begins at the database's offset, whatever is committed in
Kafka. An update of an offset names the offset before it. So a member that was frozen, and does not
know yet that it lost the partition, finds that it was overtaken, and rolls back.
"""

import signal
import sys
from collections.abc import Collection

import psycopg

from spark_kafka_source import (
    ConsumerRebalanceListener,
    ConsumerRecords,
    KafkaConsumer,
    TopicPartition,
)

TABLES = """
CREATE TABLE IF NOT EXISTS counts (word text PRIMARY KEY, number integer NOT NULL);
CREATE TABLE IF NOT EXISTS offsets (
    topic text, partition integer, next bigint NOT NULL, PRIMARY KEY (topic, partition)
);
"""
SESSION_MS = 1_000
_POLLS_A_TRANSACTION = 3


class OvertakenError(Exception):
    """Another member has read on in this partition, so this transaction must not count."""


class Stored(ConsumerRebalanceListener):
    """A listener that seeks to the database's offsets, and ends the transaction when revoked."""

    def __init__(self, consumer: KafkaConsumer, database: psycopg.Connection) -> None:
        self._consumer, self._database = consumer, database

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self._database.execute(
                "INSERT INTO offsets VALUES (%s, %s, 0) ON CONFLICT DO NOTHING", each
            )
            self._database.commit()  # One row per transaction, so that members cannot deadlock.
        self.seek(partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._database.commit()

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._database.rollback()

    def seek(self, partitions: Collection[TopicPartition]) -> None:
        """Seek to the database's offsets."""
        for each in partitions:
            found = self._database.execute(
                "SELECT next FROM offsets WHERE topic = %s AND partition = %s", each
            ).fetchone()
            self._consumer.seek(each, found[0] if found else 0)


def store(consumer: KafkaConsumer, database: psycopg.Connection, records: ConsumerRecords) -> None:
    """Count the words, and store the next offsets, in the open transaction."""
    for where in records.partitions:
        moved = database.execute(
            "UPDATE offsets SET next = %s WHERE topic = %s AND partition = %s AND next = %s",
            [consumer.position(where), *where, records.first_offset(where)],
        )
        if moved.rowcount != 1:
            raise OvertakenError(where)
    for record in records:
        database.execute(
            "INSERT INTO counts VALUES (%s, 1) "
            "ON CONFLICT (word) DO UPDATE SET number = counts.number + 1",
            [record.value.decode()],
        )


def count(consumer: KafkaConsumer, database: psycopg.Connection, topic: str) -> None:
    """Count words until SIGTERM."""
    listener = Stored(consumer, database)
    consumer.subscribe([topic], listener=listener)
    ends = []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(True))
    polls = 0
    while not ends:
        records = consumer.poll(timeout_ms=100)
        try:
            store(consumer, database, records)
            polls += 1
            if polls % _POLLS_A_TRANSACTION == 0 or not records:
                database.commit()
        except (OvertakenError, psycopg.errors.DeadlockDetected):
            database.rollback()
            listener.seek(consumer.assignment())


def main(servers: str, group: str, topic: str, conninfo: str) -> None:
    with (
        psycopg.connect(conninfo) as database,
        KafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            enable_auto_commit=False,
            max_poll_records=7,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=100,
        ) as consumer,
    ):
        count(consumer, database, topic)


if __name__ == "__main__":
    main(*sys.argv[1:])
