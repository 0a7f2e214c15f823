"""Ends of micro-batches under a byte limit, on logs with known record sizes."""

from collections.abc import Callable, Mapping
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.net import Conversation, parse_addresses
from spark_kafka_source.spark.source.limits import ByteLimit
from spark_kafka_source.spark.source.offsets import Offsets
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1, A2

CLIENT = KafkaClient(ClientConfig(parse_addresses("broker:1")))
Sample = Callable[[KafkaClient, Offsets], Conversation[Mapping[TopicPartition, float]]]


def logs(**sizes: float) -> Sample:
    """Return samples of logs. In a partition, every offset takes the same number of bytes."""

    async def sample(_: KafkaClient, positions: Offsets) -> Mapping[TopicPartition, float]:
        by_partition = {TopicPartition("a", int(name[1:])): size for name, size in sizes.items()}
        return {each: by_partition[each] for each in positions if each in by_partition}

    return sample


def test_a_log_of_even_records_is_read_up_to_the_limit() -> None:
    limit = ByteLimit(CLIENT, 10_000, sample=logs(a0=100))
    assert limit.ends({A0: 50}, {A0: 10_000}) == {A0: 150}
    assert limit.ends({A0: 9_950}, {A0: 10_000}) == {A0: 10_000}
    assert limit.ends({A0: 10_000}, {A0: 10_000}) == {A0: 10_000}


def test_partitions_share_the_bytes_by_what_waits_in_each() -> None:
    limit = ByteLimit(CLIENT, 3_000, sample=logs(a0=10, a1=100))
    assert limit.ends({A0: 0, A1: 0}, {A0: 300, A1: 300}) == {A0: 27, A1: 27}


def test_every_partition_gets_on_by_one_at_least() -> None:
    limit = ByteLimit(CLIENT, 1, sample=logs(a0=10, a1=1e6))
    assert limit.ends({A0: 0, A1: 7}, {A0: 300, A1: 8}) == {A0: 1, A1: 8}


def test_a_partition_that_cannot_be_learnt_is_like_the_others() -> None:
    limit = ByteLimit(CLIENT, 2_000, sample=logs(a0=100))
    assert limit.ends({A0: 0, A2: 0}, {A0: 100, A2: 100}) == {A0: 10, A2: 10}
    assert ByteLimit(CLIENT, 10, sample=logs()).ends({A2: 0}, {A2: 100}) == {A2: 100}


def test_records_that_grow_are_seen_and_small_ones_before_them_not_crawled_through() -> None:
    """The limit also samples the proposed end. If records there are too large, it moves nearer."""

    async def sample(_: KafkaClient, positions: Offsets) -> Mapping[TopicPartition, float]:
        return {each: 1e6 if offset >= 1000 else 100 for each, offset in positions.items()}

    limit = ByteLimit(CLIENT, 1_000_000, sample=sample)
    ends, triggers = {A0: 0}, 0
    while ends[A0] < 1000:
        before, ends = ends[A0], dict(limit.ends(ends, {A0: 1_000_000}))
        small = min(ends[A0], 1000) - before
        assert 100 * small + 1e6 * max(ends[A0] - 1000, 0) <= 1.5e6
        triggers += 1
    assert triggers <= 20


def test_what_a_shared_sample_left_out_is_asked_for_alone_each_time() -> None:
    asked: list[set[TopicPartition]] = []
    sizes = {A0: 100.0, A1: 1000.0}

    async def sample(_: KafkaClient, positions: Offsets) -> Mapping[TopicPartition, float]:
        asked.append(set(positions))
        return {each: sizes[each] for each in positions if len(positions) == 1 or each == A0}

    limit = ByteLimit(CLIENT, 11_000, sample=sample)
    assert limit.ends({A0: 0, A1: 0}, {A0: 100, A1: 100}) == {A0: 10, A1: 10}
    assert asked == [{A0, A1}, {A1}] * 2
    sizes[A1] = 10_000.0
    assert limit.ends({A0: 0, A1: 0}, {A0: 100, A1: 100}) == {A0: 1, A1: 1}


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=200),
    st.integers(1, 100_000),
    st.integers(0, 150),
)
def test_a_micro_batch_always_gets_on_and_stays_in_the_log(
    sizes: list[int], max_bytes: int, start: int
) -> None:
    start = min(start, len(sizes))

    async def sample(_: KafkaClient, positions: Offsets) -> Mapping[TopicPartition, float]:
        return {each: float(sizes[offset]) for each, offset in positions.items()}

    end = ByteLimit(CLIENT, max_bytes, sample=sample).ends({A0: start}, {A0: len(sizes)})[A0]
    assert min(start + 1, len(sizes)) <= end <= len(sizes)
    if len(set(sizes)) == 1:
        total = [0, *accumulate(sizes)]
        assert end == start + 1 or total[end] - total[start] <= max(max_bytes, sizes[0])


@pytest.mark.parametrize("max_bytes", [2**63 - 1, 2**62])
def test_a_limit_beyond_all_does_not_overflow(max_bytes: int) -> None:
    latest = {A0: 2**62, A1: 2**62}
    limit = ByteLimit(CLIENT, max_bytes, sample=logs(a0=1e9, a1=1e9))
    ends = limit.ends({A0: 0, A1: 0}, latest)
    assert all(0 < ends[each] <= latest[each] for each in latest)
