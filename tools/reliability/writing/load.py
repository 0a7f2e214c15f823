"""Numbered records, written by one thread for as long as a fault takes."""

from functools import partial
from random import Random
from threading import Event, Thread
from typing import Any, Self

import pyarrow as pa

from spark_kafka_source import KafkaProducer, RecordMetadata
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import ColumnsFuture, SendFuture
from tools.traffic import wait_until

_PAUSE_SECONDS = 0.005
_SENDS = 20
_ROWS = 60
_COLUMNS_EVERY = 4
_KEYS = 50
_MOST_PADDING_BYTES = 300


class Load:
    """Writes for the time of the context. In the end all records are acknowledged, or have failed.

    Numbers ascend in the order in which records are handed over.
    """

    def __init__(
        self, servers: str, topic: str, partitions: int, chance: Random, **settings: Any
    ) -> None:
        self._producer = KafkaProducer(bootstrap_servers=servers, **settings)
        self._topic = topic
        self._chance = Random(chance.random())
        self._stopped = Event()
        self._thread = Thread(target=self._run)
        self._sent: list[tuple[int, SendFuture]] = []
        self._columns: list[tuple[range, ColumnsFuture]] = []
        self._last_acked = dict.fromkeys(range(partitions), -1)
        self._error: Exception | None = None
        self.written = 0
        self.acknowledged: dict[int, RecordMetadata | None] = {}
        """Acknowledged numbers, with partition and offset if sent one by one, else with None."""
        self.failed: dict[int, KafkaError] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.close(1 if error_type else None)
        if self._error is not None:
            raise self._error
        self._collect()

    def await_progress(self) -> None:
        """Wait until each partition has a record written from now on."""
        since = self.written
        wait_until(lambda: self._error or min(self._last_acked.values()) > since)

    def _run(self) -> None:
        turn = 0
        try:
            while not self._stopped.wait(_PAUSE_SECONDS):
                self._send()
                turn += 1
                if turn % _COLUMNS_EVERY == 0:
                    self._send_columns()
        except Exception as error:
            self._error = error

    def _send(self) -> None:
        for _ in range(_SENDS):
            number, self.written = self.written, self.written + 1
            future = self._producer.send(
                self._topic,
                self._value(number),
                key=self._key(),
                on_delivery=partial(self._delivered, number),
            )
            self._sent.append((number, future))

    def _send_columns(self) -> None:
        numbers = range(self.written, self.written + _ROWS)
        self.written += _ROWS
        table = pa.table(
            {
                "key": pa.array([self._key() for _ in numbers], pa.binary()),
                "value": [self._value(each) for each in numbers],
            }
        )
        self._columns.append((numbers, self._producer.send_columns(self._topic, table)))

    def _key(self) -> bytes | None:
        number = self._chance.randrange(2 * _KEYS)
        return b"k%d" % number if number < _KEYS else None

    def _value(self, number: int) -> bytes:
        return b"%d %s" % (number, b"x" * self._chance.randrange(_MOST_PADDING_BYTES))

    def _delivered(self, number: int, found: RecordMetadata | None, _: KafkaError | None) -> None:
        if found is not None:
            self._last_acked[found.partition] = number

    def _collect(self) -> None:
        for number, future in self._sent:
            error = future.exception(0)
            if error is None:
                self.acknowledged[number] = future.result(0)
            else:
                self.failed[number] = error
        for numbers, columns in self._columns:
            error = columns.exception(0)
            if error is None:
                self.acknowledged.update(dict.fromkeys(numbers))
            else:
                self.failed.update(dict.fromkeys(numbers, error))
