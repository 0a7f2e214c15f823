"""A consumer of the copies that runs until its standard input ends: `python -m tools.soak.reader`.

It reads its orders as a line of JSON. It notes the rows it reads and the offsets it commits.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import TextIO

import pyarrow.compute as pc

from spark_kafka_source import ConsumerRecords, KafkaConsumer, KafkaError
from tools.soak.rows import COPIES
from tools.soak.writer import note_error, until_input_ends

_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class ReaderOrders:
    """The orders of the consumer's process."""

    servers: str
    registry: str
    notes: str
    errors: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def run(orders: ReaderOrders, stopped: Event) -> None:
    """Read, note and commit, until the event."""
    with (
        Path(orders.notes).open("a", buffering=1) as notes,
        KafkaConsumer(
            bootstrap_servers=orders.servers,
            group_id="soak-reader",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=10_000,
            value_format="avro",
            schema_registry_url=orders.registry,
        ) as consumer,
    ):
        notes.write("\n")  # The last line of a killed process may lack its end.
        consumer.subscribe([COPIES])
        while not stopped.is_set():
            try:
                take(consumer, consumer.poll(_POLL_MS), notes)
            except KafkaError as error:
                note_error(orders.errors, error)


def take(consumer: KafkaConsumer, records: ConsumerRecords, notes: TextIO) -> None:
    """Note the records of one poll, commit them, and note the commit."""
    for each in records.partitions:
        found = records.of(each).to_arrow()["value"]
        numbers = pc.struct_field(found, "number").to_pylist()
        first = records.first_offset(each)
        note = {"partition": each.partition, "first": first, "numbers": numbers}
        notes.write(f"{json.dumps(note)}\n")
    if records.partitions:
        consumer.commit()
        committed = {
            each.partition: position.offset for each, position in records.next_offsets.items()
        }
        notes.write(f"{json.dumps({'committed': committed})}\n")


def main() -> None:
    orders = ReaderOrders(**json.loads(sys.stdin.readline()))
    run(orders, until_input_ends())


if __name__ == "__main__":
    main()
