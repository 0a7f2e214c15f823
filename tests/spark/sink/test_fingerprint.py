"""The size and the fingerprint of rows do not depend on how they are divided."""

from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.spark.sink.fingerprint import FINGERPRINTS, fingerprint_of, size_of
from spark_kafka_source.spark.sink.sending import Sending
from tests.spark.sink.fake_producer import FakeProducer
from tests.spark.sink.settings import parsed, values

BYTES = pa.binary()
ROWS: list[tuple[bytes | None, bytes | None]] = [
    (b"k", b"v1"),
    (None, b"v2"),
    (b"", b""),
    (b"k", None),
]


def batch(rows: list[tuple[Any, Any]], kind: pa.DataType = BYTES) -> pa.RecordBatch:
    keys, values = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, kind), "value": pa.array(values, kind)}
    )


def test_the_size_is_that_of_keys_and_values() -> None:
    assert size_of(batch(ROWS)) == 6
    assert size_of(batch(ROWS).slice(1)) == 3
    assert size_of(batch([("k", "é")], pa.string())) == 3
    assert size_of(values("a", "bc")) == 3
    assert size_of(batch([(None, None)])) == 0


def test_the_fingerprint_is_the_sum_of_the_rows() -> None:
    found = fingerprint_of(batch(ROWS))
    assert found == fingerprint_of(batch(ROWS[::-1])) > 0
    parts = batch(ROWS).slice(0, 1), batch(ROWS).slice(1)
    assert found == sum(map(fingerprint_of, parts)) % FINGERPRINTS
    assert fingerprint_of(batch([("k", "v1")], pa.string())) == fingerprint_of(batch(ROWS[:1]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((b"k", b"v"), (b"k", b"w")),
        ((b"k", b"v"), (b"l", b"v")),
        ((b"k", b"v"), (b"v", b"k")),
        ((b"k", b"v"), (b"kv", b"")),
        ((b"k", None), (b"k", b"")),
        ((None, b"v"), (b"", b"v")),
    ],
)
def test_other_rows_have_another_fingerprint(one: Any, other: Any) -> None:
    assert fingerprint_of(batch([one])) != fingerprint_of(batch([other]))


def test_keys_and_values_that_change_places_have_another_fingerprint() -> None:
    found = fingerprint_of(batch([("a", "1"), ("b", "2")], pa.string()))
    assert found != fingerprint_of(batch([("a", "2"), ("b", "1")], pa.string()))


def test_fingerprints_are_taken_where_they_are_asked_for() -> None:
    options = parsed(topic="t", deliveryGuarantee="exactly-once", replayCheck="contents")
    to_send = Sending(FakeProducer(), options, 0)  # type: ignore[arg-type]  # a fake
    to_send.send(values("a"))
    to_send.send(values("b"))
    assert to_send.fingerprint == fingerprint_of(values("a", "b"))
