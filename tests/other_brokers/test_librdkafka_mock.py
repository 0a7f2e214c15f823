"""The mock cluster inside confluent-kafka, a broker that we did not write.

It knows ApiVersions up to version 2, refuses others in a form that is not Kafka's, and has a byte
too many in MetadataResponse v13. Groups are not tested: it cannot read a flexible JoinGroup
request, though it says that it can.
"""

import logging
from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from spark_kafka_source import KafkaConsumer, KafkaProducer, TopicPartition
from spark_kafka_source.protocol.exchange import _warn_of_rest

BROKERS = 3
_PATIENCE_SECONDS = 30


@pytest.fixture
def servers() -> Iterator[str]:
    owner = Producer({"test.mock.num.brokers": BROKERS, "bootstrap.servers": "replaced"})
    brokers = owner.list_topics(timeout=_PATIENCE_SECONDS).brokers.values()
    assert len(brokers) == BROKERS
    yield ",".join(f"{each.host}:{each.port}" for each in brokers)
    del owner


def read(
    servers: str, topic: str, *, check_crcs: bool = True
) -> list[tuple[bytes | None, bytes | None]]:
    """Read all partitions to their ends. Return keys and values, sorted."""
    with KafkaConsumer(bootstrap_servers=servers, check_crcs=check_crcs) as consumer:
        partitions = [
            TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        found: list[tuple[bytes | None, bytes | None]] = []
        while consumer.position(partitions) != ends:
            found += [(each.key, each.value) for each in consumer.poll(100)]
        return sorted(found)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_go_there_and_back(servers: str, codec: str) -> None:
    sent = [(b"k%d" % each, b"v" * each) for each in range(200)]
    with KafkaProducer(bootstrap_servers=servers, compression_type=codec) as producer:
        futures = [producer.send("t", value, key=key) for key, value in sent[:100]]
        keys, values = zip(*sent[100:], strict=True)
        columns = pa.RecordBatch.from_pydict({"key": list(keys), "value": list(values)})
        written = producer.send_columns("t", columns).result(_PATIENCE_SECONDS)
        assert sum(each.record_count for each in written) == 100
        assert all(each.result(_PATIENCE_SECONDS).offset >= 0 for each in futures)
    assert read(servers, "t") == sorted(sent)


def test_a_transaction_is_committed(servers: str) -> None:
    with KafkaProducer(bootstrap_servers=servers, transactional_id="tx") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"value")
        producer.commit_transaction()
    # Its control batch has no checksum, and takes an offset.
    assert read(servers, "t", check_crcs=False) == [(None, b"value")]


def test_bytes_after_an_answer_are_told_once(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send("t", b"")
    _warn_of_rest.cache_clear()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with KafkaConsumer(bootstrap_servers=servers) as consumer:
                consumer.partitions_for("t")
    found = [each.getMessage() for each in caplog.records]
    assert found == ["MetadataResponse v13: bytes after the end of an answer are ignored"]
