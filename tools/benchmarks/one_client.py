"""Processor time that a client takes for a record, for `tools.benchmarks.versions`.

    one_client.py SERVERS TOPIC WAY

`tools.benchmarks.versions` runs this by its path. `PYTHONPATH` names the checkout of the version.
Records have keys of 10 bytes and JSON values of 150 bytes. Prints the seconds of processor time of
all threads for a record.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import confluent_kafka as ck

from spark_kafka_source import KafkaConsumer, KafkaProducer, TopicPartition
from tools.benchmarks.produce import Records

_ROWS, _TABLE_ROWS, _WARM_UP = 200_000, 1_000_000, 20_000
_PATIENCE_SECONDS = 120

Counted = tuple[int, float]
"""A number of records, and the processor time at which the first of them came."""


def told(*_: object) -> None:
    """Hear of a record."""


def send(servers: str, topic: str) -> Counted:
    """Send records one by one."""
    return _sent(servers, topic, None)


def send_told(servers: str, topic: str) -> Counted:
    """Send records one by one, and hear of each."""
    return _sent(servers, topic, told)


def send_columns(servers: str, topic: str) -> Counted:
    """Send a table."""
    records = Records.distinct()
    table = records.columns(_TABLE_ROWS)
    with _producer(servers) as producer:
        producer.send_columns(topic, records.columns(_WARM_UP)).result(_PATIENCE_SECONDS)
        began = time.process_time()
        producer.send_columns(topic, table).result(_PATIENCE_SECONDS)
    return table.num_rows, began


def loop(servers: str, topic: str) -> Counted:
    """Take the values of records in a loop."""
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        (end,) = consumer.end_offsets([TopicPartition(topic, 0)]).values()
        values = (record.value for record in consumer)
        return _taken(values, end)


def confluent_send(servers: str, topic: str) -> Counted:
    """Produce records one by one with confluent-kafka."""
    return _produced(servers, topic, None)


def confluent_send_told(servers: str, topic: str) -> Counted:
    """Produce records one by one with confluent-kafka, and hear of each."""
    return _produced(servers, topic, told)


def confluent_loop(servers: str, topic: str) -> Counted:
    """Take the values of confluent-kafka's messages in a loop."""
    settings = {"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False}
    # By default the consumer pauses for a second when its queue is full enough.
    queue = {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 1}
    consumer = ck.Consumer(settings | queue)
    consumer.assign([ck.TopicPartition(topic, 0, ck.OFFSET_BEGINNING)])
    _, end = consumer.get_watermark_offsets(ck.TopicPartition(topic, 0), _PATIENCE_SECONDS)
    taken = _taken(_values(consumer), end)
    consumer.close()
    return taken


WAYS: Mapping[str, Callable[[str, str], Counted]] = {
    each.__name__: each
    for each in (
        send, send_told, send_columns, loop, confluent_send, confluent_send_told, confluent_loop
    )
}  # fmt: skip


def _sent(servers: str, topic: str, hearer: Callable[..., None] | None) -> Counted:
    records = Records.distinct()
    with _producer(servers) as producer:
        for key, value in records.pairs(_WARM_UP):
            producer.send(topic, value, key=key, on_delivery=hearer)
        producer.flush()
        began = time.process_time()
        for key, value in records.pairs(_ROWS):
            producer.send(topic, value, key=key, on_delivery=hearer)
    return _ROWS, began


def _produced(servers: str, topic: str, hearer: Callable[..., None] | None) -> Counted:
    producer = ck.Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": "lz4",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 500_000,
        }
    )
    records = Records.distinct()
    for key, value in records.pairs(_WARM_UP):
        producer.produce(topic, value, key, on_delivery=hearer)
    producer.flush(_PATIENCE_SECONDS)
    began = time.process_time()
    for key, value in records.pairs(_ROWS):
        producer.produce(topic, value, key, on_delivery=hearer)
    assert producer.flush(_PATIENCE_SECONDS) == 0
    return _ROWS, began


def _producer(servers: str) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=servers, compression_type="lz4")


def _values(consumer: ck.Consumer) -> Iterator[object]:
    while True:
        messages = consumer.consume(500, _PATIENCE_SECONDS)
        assert messages, "records are missing"
        for each in messages:
            yield each.value()


def _taken(values: Iterator[object], end: int) -> Counted:
    for _ in islice(values, _WARM_UP):
        pass
    began = time.process_time()
    for _ in islice(values, end - _WARM_UP):
        pass
    return end - _WARM_UP, began


def main() -> None:
    servers, topic, way = sys.argv[1:]
    count, began = WAYS[way](servers, topic)
    print((time.process_time() - began) / count)


if __name__ == "__main__":
    main()
