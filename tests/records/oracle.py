"""Kafka's own record classes, in one JVM that runs Oracle.java: a line in and a line out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.records import Codec
from tests.records.batches import TIMESTAMP_NAMES, Batch, Row
from tools.java_program import JavaProgram, run_java


class Oracle:
    """Kafka's encoder and decoder of record batches."""

    def __init__(self, program: JavaProgram) -> None:
        self.program = program

    def encode(self, batch: Batch) -> bytes:
        """Encode the batch with Kafka's `MemoryRecordsBuilder`."""
        return bytes.fromhex(self.program.ask(f"encode {question(batch)}"))

    def size_bound(self, row: Row) -> int:
        """Return the size that Kafka's producer compares with `max.request.size`."""
        return int(self.program.ask(f"size {_record(row)}"))

    def levels(self, codec: Codec) -> tuple[int, int, int]:
        """Return the lowest, the highest and the default level."""
        least, most, default = self.program.ask(f"levels {codec.name.lower()}").split(" ")
        return int(least), int(most), int(default)

    def decode(self, data: bytes) -> list[tuple[str, list[Row]]]:
        """Return the facts of each batch, in the form of `facts`, and its rows."""
        answer = self.program.ask(f"decode {data.hex()}")
        return [_decoded(batch) for batch in answer.split(" | ")]


def question(batch: Batch) -> str:
    """Return the input of Oracle.java's `encode`."""
    return " ".join([_facts(batch, batch.append_timestamp_ms), *map(_record, batch.rows)])


def facts(batch: Batch) -> str:
    """Return the description of the batch by Oracle.java's `decode`."""
    last_offset = batch.rows[-1].offset if batch.rows else batch.base_offset
    if batch.last_offset_delta is not None:
        last_offset = batch.base_offset + batch.last_offset_delta
    return f"{_facts(batch, batch.max_timestamp_ms)} false {last_offset} -1"


def _facts(batch: Batch, timestamp_ms: int) -> str:
    facts = (
        batch.codec.name.lower(),
        TIMESTAMP_NAMES[batch.timestamp_type],
        batch.base_offset,
        timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        str(batch.transactional).lower(),
        batch.leader_epoch,
    )
    return " ".join(map(str, facts))


def _record(row: Row) -> str:
    headers = ",".join(f"{key.encode().hex()}={_hex(value)}" for key, value in row.headers)
    return f"{row.offset}:{row.timestamp_ms}:{_hex(row.key)}:{_hex(row.value)}:{headers}"


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text)


def _decoded(text: str) -> tuple[str, list[Row]]:
    words = text.split(" ")
    return " ".join(words[:12]), [row_of(word) for word in words[12:]]


def row_of(text: str) -> Row:
    """Parse a record of the oracle."""
    offset, timestamp, key, value, headers = text.split(":")
    pairs = (header.split("=") for header in headers.split(",") if header)
    return Row(
        int(offset),
        int(timestamp),
        _bytes(key),
        _bytes(value),
        tuple((bytes.fromhex(name).decode(), _bytes(data)) for name, data in pairs),
    )


@contextmanager
def ask_kafka(jars: Sequence[Path]) -> Iterator[Oracle]:
    """Run the oracle with Kafka's jars on its class path."""
    with run_java(Path(__file__).with_name("Oracle.java"), jars) as program:
        yield Oracle(program)
