"""Keys go to the same partition as with Kafka's own producer and librdkafka."""

import random
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.producer.hashes import FEW, crc32, murmur2
from spark_kafka_source.producer.partitioners import (
    CONSISTENT_RANDOM,
    MURMUR2,
    MURMUR2_RANDOM,
    NO_PARTITION,
    PARTITIONERS,
    group_by_partition,
)
from spark_kafka_source.records import ByteColumn, ColumnTypeError
from tools.java_program import JavaProgram, run_java

VECTORS = [
    (bytes.fromhex(key), int(count), int(hashed, 16), int(partition))
    for line in Path(__file__).with_name("vectors.txt").read_text(encoding="ascii").splitlines()
    if not line.startswith("#")
    for key, count, hashed, partition in [line.split(" ")]
]
some_keys = st.lists(st.none() | st.binary(max_size=40), max_size=2 * FEW)
counts = st.integers(1, 100) | st.just((1 << 31) - 1)


def column(keys: Sequence[bytes | None], kind: pa.DataType | None = None) -> ByteColumn:
    return ByteColumn.of("key", pa.array(keys, kind or pa.binary()))


def of_both_ways(keys: list[Any]) -> list[list[Any]]:
    """Return few keys, which are hashed one by one, and many keys."""
    return [keys, keys * (2 * FEW)]


@pytest.mark.parametrize(("key", "count", "hashed", "partition"), VECTORS)
def test_hashes_and_partitions_are_kafkas(
    key: bytes, count: int, hashed: int, partition: int
) -> None:
    for keys in of_both_ways([key]):
        assert set(murmur2(column(keys)).tolist()) == {hashed}
        for partitioner in (MURMUR2, MURMUR2_RANDOM):
            assert set(partitioner.partitions(pa.array(keys), count).tolist()) == {partition}


def test_keys_of_all_lengths_are_hashed_together() -> None:
    keys = [key for key, *_ in VECTORS] * 3
    hashes = [hashed for _, _, hashed, _ in VECTORS] * 3
    assert murmur2(column(keys)).tolist() == hashes


def murmur2_in_words(key: bytes) -> int:
    """https://github.com/aappleby/smhasher/blob/master/src/MurmurHash2.cpp, with Kafka's seed."""
    factor, mask = 0x5BD1E995, (1 << 32) - 1
    found = 0x9747B28C ^ len(key)
    whole = len(key) - len(key) % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * factor & mask
        found = (found * factor & mask) ^ ((word ^ word >> 24) * factor & mask)
    if whole < len(key):
        found = (found ^ int.from_bytes(key[whole:], "little")) * factor & mask
    found = (found ^ found >> 13) * factor & mask
    return found ^ found >> 15


@given(some_keys | st.lists(st.binary(max_size=3)), st.integers(0, 9), st.sampled_from([1, 50]))
def test_murmur2_of_keys_side_by_side(keys: list[bytes | None], start: int, times: int) -> None:
    """A key's place in a column and its neighbours do not change its hash."""
    keys *= times
    found = murmur2(ByteColumn.of("key", pa.array(keys, pa.binary())[start:])).tolist()
    assert found == [murmur2_in_words(key or b"") for key in keys[start:]]


@given(some_keys, st.sampled_from([1, 50]))
def test_crc32_is_that_of_zlib(keys: list[bytes | None], times: int) -> None:
    found = crc32(column(keys * times)).tolist()
    assert found == [zlib.crc32(key or b"") for key in keys] * times


@given(some_keys, counts)
def test_consistent_random_takes_the_crc32_of_keys_that_are_not_empty(
    keys: list[bytes | None], count: int
) -> None:
    assert CONSISTENT_RANDOM.partitions(pa.array(keys, pa.binary()), count).tolist() == [
        zlib.crc32(key) % count if key else NO_PARTITION for key in keys
    ]


@given(some_keys, st.integers(0, 3), st.sampled_from(sorted(PARTITIONERS)))
def test_the_type_of_the_column_is_no_matter(
    keys: list[bytes | None], start: int, name: str
) -> None:
    texts = [None if key is None else key.decode("latin1") for key in keys]
    kinds = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    found = [
        PARTITIONERS[name].partitions(pa.array(texts, pa.string()).cast(kind)[start:], 7).tolist()
        for kind in kinds
    ]
    assert found == [found[0]] * len(kinds)
    assert len(found[0]) == max(len(keys) - start, 0)


@pytest.mark.parametrize("partitioner", PARTITIONERS.values(), ids=PARTITIONERS)
def test_records_without_a_key_are_left_to_the_caller(partitioner: Any) -> None:
    partitions = partitioner.partitions(pa.array([None, b"k", None], pa.binary()), 5).tolist()
    assert partitions[0] == partitions[2] == NO_PARTITION
    assert 0 <= partitions[1] < 5
    assert partitioner.partitions(pa.nulls(2), 5).tolist() == [NO_PARTITION] * 2


def test_a_null_slot_with_bytes_behind_it_has_no_key() -> None:
    buffers = [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 3, 6], np.int32)), b"abcdef"]
    keys = pa.Array.from_buffers(pa.binary(), 2, [*buffers[:2], pa.py_buffer(buffers[2])])
    assert keys.to_pylist() == [None, b"def"]
    partitions = MURMUR2.partitions(keys, 1000).tolist()
    assert partitions == [NO_PARTITION, MURMUR2.partitions(pa.array([b"def"]), 1000)[0]]


def test_one_very_long_key_holds_up_no_other() -> None:
    """Steps over all keys would need one step for every 4 bytes of that key."""
    longest = random.Random(1).randbytes(1 << 20)
    keys = [b"short"] * 100
    alone = [murmur2(column([key])).tolist()[0] for key in (longest, b"short")]
    assert set(murmur2(column([longest, *keys])).tolist()) == set(alone)


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(ColumnTypeError, match="Column 'key' is of the type int64"):
        MURMUR2.partitions(pa.array([1]), 3)
    with pytest.raises(ValueError, match="0 partitions"):
        MURMUR2.partitions(pa.array([b"k"]), 0)


@given(st.lists(st.integers(0, 9) | st.integers(0, 100_000), max_size=200))
def test_rows_are_grouped_by_partition_in_their_order(partitions: list[int]) -> None:
    grouped = group_by_partition(np.array(partitions, np.int64))
    expected: dict[int, list[int]] = {each: [] for each in sorted(partitions)}
    for row, partition in enumerate(partitions):
        expected[partition].append(row)
    assert {each: rows.tolist() for each, rows in grouped} == expected
    assert grouped.partitions.tolist() == list(expected)
    assert grouped.bounds.tolist()[-1] == len(partitions)


def test_a_row_without_a_partition_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has no partition"):
        group_by_partition(np.array([0, NO_PARTITION]))


@pytest.fixture(scope="module")
def kafkas(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with run_java(Path(__file__).with_name("Partitions.java"), kafka_jars) as program:
        yield program


@pytest.mark.java
def test_the_vectors_are_what_kafka_says_today(kafkas: JavaProgram) -> None:
    for key, count, hashed, partition in VECTORS:
        assert kafkas.ask(f"{key.hex()} {count}") == f"{hashed:08x} {partition}"


@pytest.mark.java
@given(st.lists(st.binary(max_size=70), min_size=1, max_size=3 * FEW), counts)
def test_the_java_producer_chooses_the_same_partition(
    kafkas: JavaProgram, keys: list[bytes], count: int
) -> None:
    hashes = murmur2(column(list(keys))).tolist()
    partitions = MURMUR2.partitions(pa.array(keys), count).tolist()
    for key, hashed, partition in zip(keys, hashes, partitions, strict=True):
        assert kafkas.ask(f"{key.hex()} {count}") == f"{hashed:08x} {partition}"


@pytest.mark.java
def test_of_ten_thousand_keys_all_have_kafkas_partition(kafkas: JavaProgram) -> None:
    chance = random.Random(7)
    keys = [chance.randbytes(chance.choice([0, 3, 8, 10, 36, 200])) for _ in range(10_000)]
    partitions = MURMUR2.partitions(pa.array(keys), 17).tolist()
    asked = [int(kafkas.ask(f"{key.hex()} 17").split(" ")[1]) for key in keys]
    assert partitions == asked
