"""A copy of a topic with the positions, each poll in one transaction (KIP-447).

`python -m tools.reliability.writing.pipeline servers group source target transactional-id` copies
until it is killed, or fenced: then its exit status is `FENCED`.
"""

import sys

from spark_kafka_source import (
    ConsumerRecords,
    KafkaConsumer,
    KafkaError,
    KafkaProducer,
    OffsetAndMetadata,
    ProducerFencedError,
)

FENCED = 3
SESSION_MS = 3_000
_MOST_RECORDS = 20


def main(servers: str, group: str, source: str, target: str, transactional_id: str) -> None:
    with (
        KafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            max_poll_records=_MOST_RECORDS,
        ) as consumer,
        KafkaProducer(
            bootstrap_servers=servers,
            transactional_id=transactional_id,
            transaction_timeout_ms=10_000,
            linger_ms=0,
        ) as producer,
    ):
        consumer.subscribe([source])
        producer.init_transactions()
        while True:
            records = consumer.poll(200)
            if len(records):
                copy(records, consumer, producer, target)


def copy(
    records: ConsumerRecords, consumer: KafkaConsumer, producer: KafkaProducer, target: str
) -> None:
    """Write the records of one poll, or seek back to read them again."""
    producer.begin_transaction()
    try:
        for each in records:
            producer.send(target, each.value, key=each.key)
        producer.send_offsets_to_transaction(records.next_offsets, consumer.group_metadata())
        producer.commit_transaction()
    except ProducerFencedError:
        raise
    except KafkaError as error:
        print(error, file=sys.stderr, flush=True)
        producer.abort_transaction()
        read_again(consumer)


def read_again(consumer: KafkaConsumer) -> None:
    """Seek to the committed offsets."""
    for where, committed in consumer.committed(consumer.assignment()).items():
        consumer.seek(where, (committed or OffsetAndMetadata(0)).offset)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ProducerFencedError:
        sys.exit(FENCED)
