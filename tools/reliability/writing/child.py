"""A writer of numbered records until a signal ends it: `python -m ... servers topic way`.

It prints `given N` once `send` has returned for a record, and `there N` for each acknowledged one.
With the way `stubborn` it ignores Ctrl-C until its standard input ends. Then it waits for its
records.
"""

import os
import select
import signal
import sys
from functools import partial

import pyarrow as pa

from spark_kafka_source import KafkaProducer
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import ColumnsFuture

_ROWS = 100
_OUTPUT = 1


def main(servers: str, topic: str, way: str) -> None:
    with KafkaProducer(bootstrap_servers=servers, batch_size=20_000, linger_ms=1) as producer:
        {"send": send, "columns": columns, "stubborn": stubborn}[way](producer, topic)


def send(producer: KafkaProducer, topic: str) -> None:
    for number in range(1 << 30):
        producer.send(topic, b"%d" % number, on_delivery=partial(delivered, number))
        say("given", number)


def columns(producer: KafkaProducer, topic: str) -> None:
    for first in range(0, 1 << 30, _ROWS):
        numbers = range(first, first + _ROWS)
        table = pa.table({"value": [b"%d" % each for each in numbers]})
        producer.send_columns(topic, table).add_done_callback(partial(all_there, numbers))
        say("given", *numbers)


def stubborn(producer: KafkaProducer, topic: str) -> None:
    number = 0
    is_over = False
    while not is_over:
        try:
            signal.signal(signal.SIGINT, interrupt)
            number += 1
            producer.send(topic, b"%d" % number, on_delivery=partial(delivered, number))
            say("given", number)
            is_over = bool(select.select([sys.stdin], [], [], 0)[0])
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:
            continue


def interrupt(*_: object) -> None:
    """Raise `KeyboardInterrupt` once. Ignore the next Ctrl-C while this one is caught."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def delivered(number: int, _: object, error: KafkaError | None) -> None:
    if error is None:
        say("there", number)


def all_there(numbers: range, found: ColumnsFuture) -> None:
    if found.failure() is None:
        say("there", *numbers)


def say(what: str, *numbers: int) -> None:
    """Print the lines in one write, so that they do not mix with others."""
    os.write(_OUTPUT, "".join(f"{what} {each}\n" for each in numbers).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
