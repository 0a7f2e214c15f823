"""Bytes per offset, estimated from a few batches of each log."""

import pytest

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.fetch import sampled_bytes_per_offset
from spark_kafka_source.fetch.sampling import SAMPLE_BYTES
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.records import Codec, unpacking
from spark_kafka_source.testing.memory import KAFKA_2_1, MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.fetch.reading import T0, answer

pytestmark = pytest.mark.memory(nodes=3)

T1, T2 = TopicPartition("t", 1), TopicPartition("t", 2)


def test_bytes_of_log_for_each_offset(client: KafkaClient, log: PartitionLog) -> None:
    for _ in range(3):
        log.append(b"x" * 100, b"y" * 300)
    batch_bytes = len(log.batches[0].data)
    assert client.run(sampled_bytes_per_offset(client, {T0: 0})) == {T0: batch_bytes / 2}


def test_a_sample_may_begin_in_the_middle_of_a_batch_and_compaction_leaves_gaps(
    client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"x", b"y", b"z")
    log.append(b"x", base_offset=9)
    whole = sum(len(batch.data) for batch in log.batches)
    assert client.run(sampled_bytes_per_offset(client, {T0: 2})) == {T0: whole / 10}


def test_one_request_to_each_leader(broker: MemoryBroker, client: KafkaClient) -> None:
    logs = broker.create_topic("t", partitions=3)
    for each in logs:
        each.append(b"x" * 10)
    found = client.run(sampled_bytes_per_offset(client, {T0: 0, T1: 0, T2: 0}))
    assert found.keys() == {T0, T1, T2}
    requests = broker.requests(FetchRequest)
    assert len(requests) == len({log.leader_id for log in logs})
    for request in requests:
        for topic in request.topics:
            assert {each.partition_max_bytes for each in topic.partitions} == {SAMPLE_BYTES}


def test_where_there_is_nothing_nothing_is_learnt(client: KafkaClient, log: PartitionLog) -> None:
    assert client.run(sampled_bytes_per_offset(client, {T0: 0})) == {}
    log.append(b"a")
    log.log_start_offset = 1
    assert client.run(sampled_bytes_per_offset(client, {T0: 0})) == {}
    assert client.run(sampled_bytes_per_offset(client, {})) == {}


def test_what_is_corrupt_is_left_to_the_task(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    broken = bytearray(log.batches[0].data)
    broken[16] = 7
    broker.control(FetchRequest, answer(bytes(broken)))
    assert client.run(sampled_bytes_per_offset(client, {T0: 0})) == {}


def test_other_errors_are_told(
    broker: MemoryBroker, client: KafkaClient, log: PartitionLog
) -> None:
    log.append(b"a")
    broker.control(FetchRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        client.run(sampled_bytes_per_offset(client, {T0: 0}))


def test_old_brokers_have_samples_too() -> None:
    with MemoryBroker(versions=KAFKA_2_1) as broker, KafkaClient(broker.config()) as client:
        (log,) = broker.create_topic("t")
        log.append(b"a")
        assert client.run(sampled_bytes_per_offset(client, {T0: 0})) == {
            T0: len(log.batches[0].data)
        }


def test_nothing_is_decompressed(
    client: KafkaClient, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(bytes(1000), codec=Codec.ZSTD)
    monkeypatch.setattr(unpacking, "Decompressor", None)
    assert client.run(sampled_bytes_per_offset(client, {T0: 0})) == {T0: len(log.batches[0].data)}
