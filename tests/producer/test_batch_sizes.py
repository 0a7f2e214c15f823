"""The most bytes of batches: by the settings, and by the batches that leaders refused."""

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.net import Address
from spark_kafka_source.producer import ProducerConfig
from spark_kafka_source.producer.batch_sizes import BatchSizes
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.records import Codec, Compression, EncodedBatch
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import IN_TIME, producing, values
from tests.records.record_tables import NOW_MS
from tools.three_producers import SMALL_BATCHES

pytestmark = pytest.mark.memory(topics={"t": 1})

MIB = 1 << 20
LIMIT = int(SMALL_BATCHES["max.message.bytes"])


def sizes_of(**values: Any) -> BatchSizes:
    client = ClientConfig(bootstrap_servers=(Address("127.0.0.1", 9092),))
    return BatchSizes(ProducerConfig(client, **values))


def batch(size: int, ratio: float = 1.0) -> EncodedBatch:
    """Return a batch of this encoded size; only its sizes count."""
    codec = Codec.NONE if ratio == 1 else Codec.LZ4
    return EncodedBatch(0, 0, 2, NOW_MS, NOW_MS, codec, int(size / ratio), bytes(size - 61))


def test_a_request_with_one_batch_is_within_max_request_size() -> None:
    sizes = sizes_of(max_request_size=20_000)
    room = 20_000 - sizes.of_records("t") - 61
    assert 50 < room < 200
    assert sizes.of_records("t" * 249) == sizes.of_records("t") - 248
    assert sizes_of(max_request_size=1).of_records("t") == 1, "a record by itself"
    assert sizes_of(batch_size=500).of_records("t") == 500
    assert sizes_of(buffer_memory=400).of_records("t") == 400


def test_what_is_refused_is_remembered_by_topic() -> None:
    sizes = sizes_of()
    usual = sizes.of_records("u")
    assert sizes.of_encoded("t") is None
    assert sizes.refused("t", batch(MIB)) == sizes.of_encoded("t") == MIB // 4
    assert sizes.of_records("t") == MIB // 4 - 61
    sizes.accepted("u", batch(MIB))
    assert (sizes.of_encoded("u"), sizes.of_records("u")) == (None, usual)


def test_batches_that_were_on_their_way_change_nothing() -> None:
    sizes = sizes_of()
    sizes.refused("t", batch(MIB))
    sizes.refused("t", batch(MIB // 2))
    assert sizes.of_encoded("t") == MIB // 8
    sizes.refused("t", batch(MIB))
    assert sizes.of_encoded("t") == MIB // 8


def test_a_larger_batch_that_is_taken_shows_that_there_is_room() -> None:
    sizes = sizes_of()
    sizes.refused("t", batch(MIB))
    sizes.accepted("t", batch(MIB // 2))
    assert sizes.of_encoded("t") == MIB // 2
    assert sizes.refused("t", batch(MIB // 2 + 1)) == MIB // 2


def test_a_limit_that_was_lowered_is_found_again() -> None:
    sizes = sizes_of()
    sizes.refused("t", batch(MIB))
    sizes.accepted("t", batch(MIB // 4))
    assert sizes.refused("t", batch(MIB // 4)) == MIB // 16


def test_compressed_records_are_counted_by_their_ratio() -> None:
    sizes = sizes_of(batch_size=100 * MIB, buffer_memory=200 * MIB, max_request_size=200 * MIB)
    sizes.refused("t", batch(MIB, ratio=0.1))
    at_first = sizes.of_records("t")
    assert at_first == pytest.approx(MIB / 4 / 0.1 * 0.9, rel=0.01)
    sizes.accepted("t", batch(10_000, ratio=0.5))
    assert sizes.of_records("t") == pytest.approx(at_first / 5, rel=0.01)
    sizes.accepted("t", batch(10_000, ratio=0.1))
    assert at_first / 5 < sizes.of_records("t") < at_first / 4.9, "it comes back slowly"


def test_so_many_topics_are_remembered() -> None:
    sizes = sizes_of()
    for number in range(1_001):
        sizes.refused(f"t{number}", batch(MIB))
    assert sizes.of_encoded("t0") is None
    assert sizes.of_encoded("t1") == sizes.of_encoded("t1000") == MIB // 4


def table(given_values: list[bytes]) -> pa.Table:
    return pa.table({"value": given_values})


def wire_bytes(broker: MemoryBroker) -> int:
    """Return the bytes of all batches in requests."""
    return sum(
        len(each.records or b"")
        for request in broker.requests(ProduceRequest)
        for topic in request.topic_data
        for each in topic.partition_data
    )


@given(st.integers(1_000, MIB - 1), st.integers())
def test_the_limit_is_found_and_tries_cost_little(limit: int, seed: int) -> None:
    """The model is a leader that refuses batches beyond a limit, and one request at a time."""
    sizes, chance = sizes_of(), random.Random(seed)
    taken = refused = 0
    while taken < 2_000 * limit:
        size = sizes.of_encoded("t") or MIB
        size = size if chance.random() < 0.8 else max(chance.randrange(size), 62)
        if size > limit:
            refused += size
            sizes.refused("t", batch(size))
        else:
            taken += size
            sizes.accepted("t", batch(size))
    assert refused <= 2 * MIB + 0.02 * taken
    assert limit / 1.3 <= (sizes.of_encoded("t") or MIB) <= limit * 5 / 4


@pytest.mark.parametrize("way", ["send", "send_columns"])
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_topic_with_small_batches_costs_little_more_on_the_wire(
    broker: MemoryBroker, way: str, codec: str
) -> None:
    broker.cluster.max_message_bytes = LIMIT
    chance = random.Random(1)
    # Half of each value can be compressed.
    given_values = [chance.randbytes(500) + bytes(500) for _ in range(10_000)]
    settings = {"linger_ms": 5, "compression_type": codec}
    with producing(broker, **settings) as producer:
        for _ in range(2):
            broker.forget()
            if way == "send":
                for value in given_values:
                    producer.send("t", value)
            else:
                producer.send_columns("t", table(given_values))
            producer.flush(IN_TIME)
            found = wire_bytes(broker)
    assert values(broker.cluster.topics["t"].logs[0]) == given_values * 2
    least = len(Compression(Codec[codec.upper()]).compress(b"".join(given_values)))
    assert found < 1.15 * least, "the second time the limit is known"
