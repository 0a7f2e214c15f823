"""The partitions and leaders of a producer's topics."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from spark_kafka_source.client import Cluster, KafkaClient
from spark_kafka_source.denials import Access
from spark_kafka_source.errors import BootstrapError, BrokerError, KafkaTimeoutError, error_named
from spark_kafka_source.net import Address
from spark_kafka_source.producer import ProducerConfig, UnknownPartitionError
from spark_kafka_source.producer.config import Partitioner
from spark_kafka_source.producer.topics import Topics
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from spark_kafka_source.testing.memory import ONE_TRY, Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tools.ports import LOOPBACK, refused_port

pytestmark = pytest.mark.memory(nodes=2, topics={"t": 2})

UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")


@pytest.fixture
def client(broker: MemoryBroker) -> Iterator[KafkaClient]:
    with KafkaClient(broker.config(), Cluster(Access.WRITE)) as client:
        yield client


def topics_of(client: KafkaClient, **values: Any) -> Topics:
    queued: dict[TopicPartition, int] = values.pop("queued", {})
    config = ProducerConfig(client.config, **values)
    return Topics(client, config, lambda where: queued.get(where, 0))


def grow(broker: MemoryBroker, count: int) -> None:
    """Raise the number of partitions of topic t."""
    topic = broker.cluster.topics["t"]
    broker.create_topic("t", count, topic_id=topic.topic_id)


def chosen(topics: Topics, times: int = 40) -> set[int]:
    return {topics.of("t").next_one(1_000_000) for _ in range(times)}


# -- requests --------------------------------------------------------------------------------------


def test_a_topic_is_asked_for_once_and_may_be_created_by_it(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.cluster.creates_topics = True
    topics = topics_of(client)
    assert topics.of("t").count == 2
    assert topics.of("t").count == 2
    assert topics.of("new").count >= 1
    first, *_ = broker.requests(MetadataRequest)
    assert first.allow_auto_topic_creation
    assert [each.topics for each in broker.requests(MetadataRequest)].count(first.topics) == 1


def test_a_topic_that_comes_late_is_waited_for(broker: MemoryBroker, client: KafkaClient) -> None:
    broker.control(MetadataRequest, UNKNOWN, times=3)
    assert topics_of(client).of("t").count == 2
    assert len(broker.requests(MetadataRequest)) == 4


def test_a_topic_that_does_not_come_is_named_with_the_option(broker: MemoryBroker) -> None:
    with (
        KafkaClient(broker.config(**ONE_TRY)) as client,
        pytest.raises(KafkaTimeoutError) as caught,
    ):
        topics_of(client, max_block_ms=61_234).of("nope")
    text = str(caught.value)
    assert "the partitions of topic 'nope' are not known within 61234 ms" in text
    assert "'kafka.max.block.ms'" in text
    assert "topic 'nope' does not exist (UNKNOWN_TOPIC_OR_PARTITION)" in text
    assert "Create it, as with `spark-kafka-source topics create` or `KafkaAdmin" in text
    assert "'auto.create.topics.enable'" in text
    assert caught.value.retriable


def test_a_topic_that_does_not_exist_is_told_once_while_it_is_waited_for(
    broker: MemoryBroker, client: KafkaClient, caplog: pytest.LogCaptureFixture
) -> None:
    broker.control(MetadataRequest, UNKNOWN, times=20)
    assert topics_of(client).of("t").count == 2
    (said,) = caplog.messages
    assert "topic 't' does not exist" in said
    assert "'auto.create.topics.enable'" in said
    assert "waited for up to 60000 ms ('kafka.max.block.ms')" in said


def test_a_topic_that_stays_missing_is_told_once_and_not_by_each_call(
    broker: MemoryBroker, client: KafkaClient, caplog: pytest.LogCaptureFixture
) -> None:
    topics = topics_of(client, max_block_ms=1_500)
    for _ in range(2):
        with pytest.raises(KafkaTimeoutError):
            topics.of("nope")
    assert len(caplog.messages) == 1
    broker.create_topic("nope")
    topics.of("nope")
    broker.delete_topic("nope")
    with pytest.raises(KafkaTimeoutError):
        topics.of("nope", 2)
    assert len(caplog.messages) == 2, "it was there, and is missing again"


def test_a_topic_that_a_broker_creates_is_not_told(
    broker: MemoryBroker, client: KafkaClient, caplog: pytest.LogCaptureFixture
) -> None:
    broker.control(MetadataRequest, UNKNOWN, times=3)
    assert topics_of(client).of("t").count == 2
    assert not caplog.messages


def test_a_topic_that_is_denied_is_told_at_once_with_the_right_that_is_missing(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics = topics_of(client)
    broker.control(MetadataRequest, error_named("TOPIC_AUTHORIZATION_FAILED"))
    with pytest.raises(BrokerError, match="the user needs WRITE on topic 't'"):
        topics.of("t")
    assert topics.of("t").count == 2, "it works again once it is allowed"


def test_where_no_broker_is_reached_the_addresses_are_named(broker: MemoryBroker) -> None:
    with refused_port() as port:
        config = broker.config(bootstrap_servers=(Address(LOOPBACK, port),), **ONE_TRY)
        with KafkaClient(config) as client, pytest.raises(BootstrapError, match=str(port)):
            topics_of(client).of("t")


@pytest.mark.parametrize(
    "topics",
    [[], [MetadataResponseTopic(0, "another")], [MetadataResponseTopic(0, "t", partitions=[])]],
    ids=["none", "another", "without partitions"],
)
def test_an_answer_of_no_use_is_asked_for_again(
    broker: MemoryBroker, client: KafkaClient, topics: list[MetadataResponseTopic]
) -> None:
    broker.control(MetadataRequest, MetadataResponse(topics=topics))
    assert topics_of(client).of("t").count == 2


def test_a_topic_that_is_waited_for_keeps_nobody_from_another(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics = topics_of(client)
    found: list[Exception] = []

    def look() -> None:
        try:
            topics.of("nope")
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    broker.wait_for(MetadataRequest, 3)
    assert topics.of("t").count == 2
    assert not found
    assert not client.cluster.missing([TopicPartition("t", 0)]), "nothing of others is forgotten"
    client.close()
    thread.join()
    assert len(found) == 1


# -- changes ---------------------------------------------------------------------------------------


def test_more_partitions_are_seen_where_one_of_them_is_asked_for(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics = topics_of(client, max_block_ms=2_000)
    assert topics.of("t").count == 2
    grow(broker, 4)
    assert topics.of("t", 2).count == 2
    assert topics.of("t", 4).count == 4
    assert topics.of("t", 9).count == 4
    with pytest.raises(UnknownPartitionError, match="'t' has no partition 4: it has 4, from 0 on"):
        topics.of("t").check(4)
    with pytest.raises(UnknownPartitionError):
        topics.of("t").check(-1)


def test_what_the_producers_thread_has_learnt_is_known_without_asking(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics = topics_of(client)
    known = topics.of("t")
    grow(broker, 4)
    broker.stop(1)
    with client.sibling() as other:
        other.run(other.retrying("Metadata", lambda deadline: other.topics(["t"], deadline)))
    broker.forget()
    assert topics.of("t") is known
    assert known.count == 4
    assert chosen(topics) == {0, 2}
    assert not broker.seen


def test_old_knowledge_serves_while_no_broker_answers(broker: MemoryBroker) -> None:
    with KafkaClient(broker.config(metadata_max_age_ms=0)) as client:
        topics = topics_of(client)
        assert topics.of("t").count == 2
        topics._config = replace(topics._config, max_block_ms=50)
        broker.control(MetadataRequest, Action.SILENCE, times=None)
        assert topics.of("t").count == 2
        with pytest.raises(KafkaTimeoutError, match="topic 'other' are not known within 50 ms"):
            topics.of("other")


# -- records without a key -------------------------------------------------------------------------


def test_a_partition_without_a_leader_gets_nothing_as_long_as_another_has_one(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.stop(1)
    assert chosen(topics_of(client)) == {0}


def test_records_without_a_key_go_to_leaders_in_the_rack_of_the_client(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    """KIP-1123. A rack without any leader is as good as none."""
    broker.cluster.racks = {0: "a", 1: "b"}
    grow(broker, 4)
    near = {"client_rack": "b", "partitioner_rack_aware": True}
    topics = topics_of(client, **near)
    assert chosen(topics) == {1, 3}
    broker.move_leader(TopicPartition("t", 0), 1)
    client.run(client.retrying("Metadata", lambda within: client.topics(["t"], within)))
    assert chosen(topics) == {0, 1, 3}
    for others in ({"client_rack": "c"}, {"partitioner_rack_aware": False}):
        assert chosen(topics_of(client, **near | others)) == {0, 1, 2, 3}


def test_where_no_partition_has_a_leader_all_of_them_wait_for_one(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    for partition in range(2):
        broker.move_leader(TopicPartition("t", partition), 7)
    assert chosen(topics_of(client)) == {0, 1}


@pytest.mark.parametrize("batch_size", [16_384, 1 << 20, 1 << 30])
def test_records_stay_together_for_16_kib_whatever_a_batch_takes(
    client: KafkaClient, batch_size: int
) -> None:
    topics = topics_of(client, batch_size=batch_size)
    partitions = [topics.of("t").next_one(1_024) for _ in range(16 * 200)]
    runs = [len(list(run)) for _, run in groupby(partitions)]
    assert {each % 16 for each in runs} == {0}
    assert max(runs) <= 32, "two turns follow each other only from one round to the next"
    assert Counter(partitions) == {0: 1600, 1: 1600}
    assert topics.of("t").next_ones(np.full(5, 1)).tolist() in ([0] * 5, [1] * 5)


def test_smaller_batches_end_a_turn_earlier(client: KafkaClient) -> None:
    topics = topics_of(client, batch_size=1_000)
    partitions = [topics.of("t").next_one(100) for _ in range(200)]
    assert {len(list(run)) % 10 for _, run in groupby(partitions)} == {0}


@pytest.mark.parametrize("way", ["one by one", "columns"])
def test_a_batch_that_ends_ends_the_turn_of_its_partition(client: KafkaClient, way: str) -> None:
    topics = topics_of(client)
    known = topics.of("t")

    def chosen_now() -> int:
        return known.next_one(1) if way == "one by one" else int(known.next_ones(np.full(1, 1))[0])

    assert len({chosen_now() for _ in range(100)}) == 1
    found = Counter[int]()
    for _ in range(100):
        partition = chosen_now()
        found[partition] += 1
        topics.batch_ended(TopicPartition("t", 1 - partition))
        topics.batch_ended(TopicPartition("unknown", partition))
        assert chosen_now() == partition
        topics.batch_ended(TopicPartition("t", partition))
    assert found[0] in (49, 50, 51)


def test_a_partition_for_which_more_batches_wait_gets_fewer_records(client: KafkaClient) -> None:
    slow = {TopicPartition("t", 0): 10_000}
    assert chosen(topics_of(client, queued=slow)) == {1}
    every = topics_of(client, queued=slow, partitioner_adaptive_partitioning_enable=False)
    assert chosen(every) == {0, 1}


def test_librdkafkas_send_each_record_anywhere(client: KafkaClient) -> None:
    topics = topics_of(client, partitioner=Partitioner.CONSISTENT_RANDOM)
    assert {topics.of("t").next_one(1) for _ in range(100)} == {0, 1}
    assert set(topics.of("t").next_ones(np.full(100, 1)).tolist()) == {0, 1}


def test_round_robin_gives_each_record_to_the_next_partition(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    topics = topics_of(client, partitioner=Partitioner.ROUND_ROBIN)
    assert [topics.of("t").next_one(1_000_000) for _ in range(5)] == [0, 1, 0, 1, 0]
    assert topics.of("t").next_ones(np.full(4, 1)).tolist() == [1, 0, 1, 0]
    broker.create_topic("other", 3)
    assert [topics.of("other").next_one(1) for _ in range(4)] == [0, 1, 2, 0], "by topic"
    assert topics.of("t").next_one(1) == 1


def test_round_robin_leaves_out_a_partition_without_a_leader(
    broker: MemoryBroker, client: KafkaClient
) -> None:
    broker.create_topic("three", 3)
    broker.move_leader(TopicPartition("three", 1), 7)
    topics = topics_of(client, partitioner=Partitioner.ROUND_ROBIN)
    assert [topics.of("three").next_one(1) for _ in range(4)] == [0, 2, 0, 2]
    assert topics.of("three").next_ones(np.full(3, 1)).tolist() == [0, 2, 0]
