"""A producer that writes rows until its standard input ends: `python -m tools.soak.writer`.

It reads its orders as a line of JSON. Its ledger has the outcome of each transaction.
"""

import json
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from threading import Event, Thread

import pyarrow as pa

from spark_kafka_source import KafkaError, KafkaProducer
from spark_kafka_source.errors import KafkaTimeoutError
from tools.soak.ledger import ABORTED, COMMITTED, UNKNOWN, Ledger
from tools.soak.rows import ORDERS, SCHEMA, amount_of, key_of

_LONGEST_TRANSACTION_SECONDS = 1.5
_ABORTED_SHARE = 0.2
_COLUMNS_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class WriterOrders:
    """The orders of the producer's process."""

    servers: str
    registry: str
    ledger: str
    errors: str
    rows_a_second: int
    seed: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Writer:
    """A writer of one transaction after another."""

    def __init__(self, orders: WriterOrders, ledger: Ledger) -> None:
        self._orders, self._ledger = orders, ledger
        self._chance = Random(f"{orders.seed}-{ledger.next_number}")
        self._next = ledger.next_number

    def run(self, stopped: Event) -> None:
        """Write until the event. A new producer replaces one that cannot go on."""
        while not stopped.is_set():
            try:
                with self._producer() as producer:
                    producer.init_transactions()
                    while not stopped.is_set():
                        self._transaction(producer)
            except KafkaError as error:
                note_error(self._orders.errors, error)
                stopped.wait(1)

    def _producer(self) -> KafkaProducer:
        return KafkaProducer(
            bootstrap_servers=self._orders.servers,
            transactional_id="soak-writer",
            key_serializer=str.encode,
            value_format="avro",
            value_schema=SCHEMA,
            schema_registry_url=self._orders.registry,
            auto_register_schemas=True,
        )

    def _transaction(self, producer: KafkaProducer) -> None:
        seconds = self._chance.uniform(0.1, _LONGEST_TRANSACTION_SECONDS)
        ends = time.monotonic() + seconds
        count = max(1, int(seconds * self._orders.rows_a_second))
        numbers = range(self._next, self._next + count)
        self._next = numbers.stop
        self._ledger.note(UNKNOWN, numbers)
        producer.begin_transaction()
        outcome = self._end(producer, numbers)
        self._ledger.note(outcome, numbers)
        time.sleep(max(0.0, ends - time.monotonic()))

    def _end(self, producer: KafkaProducer, numbers: range) -> str:
        try:
            self._send(producer, numbers)
            if self._chance.random() >= _ABORTED_SHARE:
                _commit(producer)
                return COMMITTED
        except KafkaError as error:
            note_error(self._orders.errors, error)
        producer.abort_transaction()
        return ABORTED

    def _send(self, producer: KafkaProducer, numbers: range) -> None:
        rows = [{"number": each, "amount": amount_of(each)} for each in numbers]
        keys = [key_of(each) for each in numbers]
        if self._chance.random() < _COLUMNS_SHARE:
            producer.send_columns(ORDERS, pa.table({"key": keys, "value": pa.array(rows)}))
            return
        for key, row in zip(keys, rows, strict=True):
            producer.send(ORDERS, row, key=key)


def _commit(producer: KafkaProducer) -> None:
    """Commit, and repeat the commit while its outcome is unknown."""
    while True:
        try:
            producer.commit_transaction()
        except KafkaTimeoutError:
            continue
        return


def note_error(path: str, error: object) -> None:
    """Append an error to the file of a process's errors."""
    with Path(path).open("a") as file:
        file.write(f"{time.strftime('%H:%M:%S')} {str(error)[:4000]}\n")


def until_input_ends() -> Event:
    """Return an event that is set when the standard input ends."""
    ended = Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    Thread(target=wait, daemon=True).start()
    return ended


def main() -> None:
    orders = WriterOrders(**json.loads(sys.stdin.readline()))
    with closing(Ledger(Path(orders.ledger))) as ledger:
        Writer(orders, ledger).run(until_input_ends())


if __name__ == "__main__":
    main()
