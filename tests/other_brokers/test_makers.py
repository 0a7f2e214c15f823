"""Reading, writing, groups and exactly once on brokers that lack what Apache Kafka has."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer, KafkaProducer, TopicPartition
from spark_kafka_source.errors import BrokerError, KafkaTimeoutError, UnsupportedVersionError
from spark_kafka_source.records import Codec
from spark_kafka_source.testing.memory import MemoryBroker
from tests.exactly_once.conftest import in_memory_trial
from tests.other_brokers.makers import MAKERS, Maker

_PARTITIONS = 3
_PATIENCE_MS = 30_000


@pytest.fixture(params=MAKERS, ids=lambda each: each.name)
def maker(request: pytest.FixtureRequest) -> Maker:
    found: Maker = request.param
    return found


@pytest.fixture
def broker(maker: Maker) -> Iterator[MemoryBroker]:
    with maker.broker() as broker:
        broker.create_topic("t", _PARTITIONS)
        yield broker


def write(broker: MemoryBroker, values: list[bytes], **settings: Any) -> None:
    with KafkaProducer(bootstrap_servers=str(broker.address()), **settings) as producer:
        for future in [producer.send("t", each) for each in values]:
            future.result(_PATIENCE_MS / 1000)


@pytest.mark.parametrize("codec", Codec, ids=lambda each: each.name.lower())
def test_each_codec_is_taken_or_refused_by_name(
    broker: MemoryBroker, maker: Maker, codec: Codec
) -> None:
    values = [b"%d" % each for each in range(10)]
    if codec not in maker.codecs:
        with pytest.raises(BrokerError, match="UNSUPPORTED_COMPRESSION_TYPE"):
            write(broker, values, compression_type=codec.name.lower())
        return
    write(broker, values, compression_type=codec.name.lower())
    with KafkaConsumer(bootstrap_servers=str(broker.address())) as consumer:
        consumer.assign([TopicPartition("t", each) for each in range(_PARTITIONS)])
        consumer.seek_to_beginning()
        found = [record.value for record in islice(consumer, len(values))]
    assert sorted(found) == sorted(values)


def test_a_group_goes_on_where_it_was(broker: MemoryBroker) -> None:
    servers = str(broker.address())
    for first in (0, 5):
        write(broker, [b"%d" % each for each in range(first, first + 5)])
        with KafkaConsumer(
            bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["t"])
            found = sorted(int(record.value) for record in islice(consumer, 5))
            assert found == [*range(first, first + 5)]
            consumer.commit()


def test_a_protocol_of_groups_that_is_missing_is_named(broker: MemoryBroker, maker: Maker) -> None:
    if maker.has_second_protocol:
        pytest.skip("it has the protocol")
    with KafkaConsumer(
        bootstrap_servers=str(broker.address()), group_id="g", group_protocol="consumer"
    ) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(UnsupportedVersionError, match="ConsumerGroupHeartbeat"):
            consumer.poll(_PATIENCE_MS)


def test_a_micro_batch_is_written_once_or_refused_by_name(
    broker: MemoryBroker, maker: Maker
) -> None:
    trial = in_memory_trial(broker, "once")
    run = trial.query.start()
    if not maker.has_transactions:
        with pytest.raises(UnsupportedVersionError, match="the broker does not have this API"):
            run.commit(0, run.write(0))
        return
    for batch in range(2):
        run.commit(batch, run.write(batch))
    run = trial.query.start()
    run.commit(1, run.write(1))
    trial.judge()


def test_large_requests_are_kept_within_the_limit_that_is_given() -> None:
    event_hubs = MAKERS[0]
    values = [bytes(900_000)] * 3
    with event_hubs.broker() as broker:
        broker.create_topic("t", 1)
        write(broker, values, max_request_size=1_000_000)
        with pytest.raises(KafkaTimeoutError):
            write(
                broker,
                [bytes(1_046_600)],
                max_request_size=2_000_000,
                delivery_timeout_ms=300,
                request_timeout_ms=200,
                linger_ms=0,
            )
