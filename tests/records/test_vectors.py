"""Batches of Kafka's own classes, read by us, and our batches, read by Kafka's own classes.

vectors.txt names the origin of its bytes. So a bug of our encoder cannot hide one of the decoder.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from spark_kafka_source.records import (
    AbortedTransaction,
    Codec,
    IsolationLevel,
    encode_control_batch,
)
from tests.records.batches import TIMESTAMP_NAMES, Batch, encoded, header_of, rows_of
from tests.records.oracle import Oracle, ask_kafka, facts, row_of
from tests.records.strategies import batch, kafka_timestamps, untimed

_LINES = [
    line
    for line in Path(__file__).with_name("vectors.txt").read_text(encoding="ascii").splitlines()
    if not line.startswith("#")
]
VECTORS = dict(zip(_LINES[::2], map(bytes.fromhex, _LINES[1::2]), strict=True))


def of_kind(kind: str) -> list[str]:
    return [asked for asked in VECTORS if asked.startswith(kind)]


def described(asked: str) -> Batch:
    """Return the batch of an `encode` request."""
    words = asked.split(" ")[1:]
    return Batch(
        rows=tuple(map(row_of, words[9:])),
        base_offset=int(words[2]),
        codec=Codec[words[0].upper()],
        timestamp_type=next(kind for kind, name in TIMESTAMP_NAMES.items() if name == words[1]),
        append_timestamp_ms=int(words[3]),
        producer_id=int(words[4]),
        producer_epoch=int(words[5]),
        base_sequence=int(words[6]),
        transactional=words[7] == "true",
        leader_epoch=int(words[8]),
    )


@pytest.mark.parametrize("asked", of_kind("encode"))
def test_batches_made_by_kafka_are_read(asked: str) -> None:
    batch, data = described(asked), VECTORS[asked]
    assert rows_of(data) == batch.expected
    header = header_of(data)
    assert header[:1] == (batch.base_offset,)
    assert header.codec is batch.codec
    assert header.timestamp_type is batch.timestamp_type
    assert header.is_transactional is batch.transactional
    assert header.last_offset == batch.rows[-1].offset
    assert header.max_timestamp == batch.max_timestamp_ms
    assert header.partition_leader_epoch == batch.leader_epoch
    assert header[9:12] == (batch.producer_id, batch.producer_epoch, batch.base_sequence)


@pytest.mark.parametrize(
    "asked", [asked for asked in of_kind("encode") if described(asked).codec is Codec.NONE]
)
def test_uncompressed_batches_are_encoded_as_kafka_does_byte_for_byte(asked: str) -> None:
    assert encoded(described(asked)) == VECTORS[asked]


@pytest.mark.parametrize("asked", of_kind("marker"))
def test_markers_are_encoded_as_kafka_does_byte_for_byte(asked: str) -> None:
    kind, base_offset, timestamp_ms, leader_epoch, producer_id, epoch, coordinator = asked.split(
        " "
    )[1:]
    ours = encode_control_batch(
        commit=kind == "COMMIT",
        base_offset=int(base_offset),
        timestamp_ms=int(timestamp_ms),
        leader_epoch=int(leader_epoch),
        producer_id=int(producer_id),
        producer_epoch=int(epoch),
        coordinator_epoch=int(coordinator),
    )
    assert ours == VECTORS[asked]
    assert rows_of(ours) == []


def test_markers_made_by_kafka_end_an_aborted_transaction() -> None:
    (abort,) = (VECTORS[asked] for asked in of_kind("marker ABORT"))
    (aborted,) = (asked for asked in of_kind("encode lz4") if " 4000 " in asked)
    options = {
        "isolation_level": IsolationLevel.READ_COMMITTED,
        "aborted": [AbortedTransaction(4000, 100)],
    }
    after = encoded(
        Batch(
            tuple(row_of(f"12{n}:0:-:-:") for n in range(2)),
            120,
            producer_id=4000,
            transactional=True,
        )
    )
    assert [row.offset for row in rows_of(VECTORS[aborted] + abort + after, **options)] == [
        120,
        121,
    ]


@pytest.mark.parametrize("asked", of_kind("compact"))
def test_batches_compacted_by_kafka_are_read(asked: str) -> None:
    _, before, kept = asked.split(" ")
    expected = [row for row in rows_of(bytes.fromhex(before)) if str(row.offset) in kept.split(",")]
    assert rows_of(VECTORS[asked]) == expected


@pytest.fixture(scope="module")
def oracle(kafka_jars: list[Path]) -> Iterator[Oracle]:
    with ask_kafka(kafka_jars) as oracle:
        yield oracle


@pytest.mark.java
def test_kafka_still_makes_the_vectors(oracle: Oracle) -> None:
    for asked, data in VECTORS.items():
        assert oracle.program.ask(asked) == data.hex()


@pytest.mark.java
@untimed
@given(batch(timestamps=kafka_timestamps))
def test_kafka_reads_what_we_encode(oracle: Oracle, batch: Batch) -> None:
    assert oracle.decode(encoded(batch)) == [(facts(batch), batch.expected)]


@pytest.mark.java
@untimed
@given(batch(min_size=1, timestamps=kafka_timestamps))
def test_we_read_what_kafka_encodes(oracle: Oracle, batch: Batch) -> None:
    data = oracle.encode(batch)
    assert rows_of(data) == batch.expected
    assert header_of(data).timestamp_type is batch.timestamp_type
