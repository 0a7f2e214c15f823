"""Seconds of one call of a client, for `tools.benchmarks.versions`, which runs this by its path.

    one_call.py SERVERS TOPIC CALL

`PYTHONPATH` names the checkout of the version. The topic has one partition, with records. Prints
the mean seconds of the call.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_kafka_source import KafkaConsumer, KafkaProducer, TopicPartition

_WARM_UP = 200


@contextmanager
def _consumer(servers: str, topic: str, most: int = 500) -> Iterator[KafkaConsumer]:
    with KafkaConsumer(
        bootstrap_servers=servers, group_id="calls", max_poll_records=most
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        yield consumer


@contextmanager
def poll_one(servers: str, topic: str) -> Iterator[Callable[[], object]]:
    """Poll one record, fetched ahead with others."""
    with _consumer(servers, topic, most=1) as consumer:
        yield lambda: next(iter(consumer.poll(10_000)))


@contextmanager
def next_record(servers: str, topic: str) -> Iterator[Callable[[], object]]:
    """Take the next record of a loop."""
    with _consumer(servers, topic) as consumer:
        records = iter(consumer)
        yield lambda: next(records)


@contextmanager
def poll_none(servers: str, topic: str) -> Iterator[Callable[[], object]]:
    """Poll without waiting when there is nothing."""
    with _consumer(servers, topic) as consumer:
        consumer.seek_to_end()
        consumer.poll(1_000)
        yield lambda: consumer.poll(0)


@contextmanager
def commit(servers: str, topic: str) -> Iterator[Callable[[], object]]:
    """Commit a position, and wait."""
    with _consumer(servers, topic, most=1) as consumer:
        consumer.poll(10_000)
        yield consumer.commit


@contextmanager
def send_and_wait(servers: str, topic: str) -> Iterator[Callable[[], object]]:
    """Send one record, and wait until it is written."""
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        yield lambda: producer.send(topic, b"x" * 150).result()


CALLS = {
    each.__name__: (each, calls)
    for each, calls in (
        (poll_one, 20_000),
        (next_record, 90_000),
        (poll_none, 5_000),
        (commit, 1_000),
        (send_and_wait, 1_000),
    )
}
"""Each call, and how many times it is made."""


def main() -> None:
    servers, topic, name = sys.argv[1:]
    prepared, calls = CALLS[name]
    with prepared(servers, topic) as call:
        for _ in range(_WARM_UP):
            call()
        started = time.perf_counter()
        for _ in range(calls):
            call()
        print((time.perf_counter() - started) / calls)


if __name__ == "__main__":
    main()
