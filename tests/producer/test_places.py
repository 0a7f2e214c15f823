"""The place of a prepared transaction: its last batch whose offset a leader has told."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import ConnectionFailedError, KafkaTimeoutError
from spark_kafka_source.net import Deadline
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.producer import (
    Beginning,
    Generation,
    KafkaProducer,
    Place,
    PreparedTransaction,
    ProducerId,
    SendFuture,
    TransactionCoordinator,
)
from spark_kafka_source.producer.produce_answers import ProduceAnswers, RequestInFlight
from spark_kafka_source.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.records import BatchHeader, batches
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.producer.writing import HOUR_MS, IN_TIME, T0, answering, producing

BOTH = pytest.mark.parametrize("generation", Generation, ids=lambda each: each.name.lower())
MOST_BYTES = 20_000
_WITH_NAMES = 12


class Brokers(NamedTuple):
    """Brokers with a topic of three partitions, a client of them, and a producer."""

    client: KafkaClient
    topic: str
    producer: KafkaProducer

    def begin(self, generation: Generation, name: str | None = None) -> ProducerId:
        """Begin a transaction with a new epoch. The default name is the topic's."""
        name = name or self.topic
        coordinator = TransactionCoordinator(self.client, name)
        given = self.client.run(coordinator.init_producer_id(60_000))
        self.producer.begin_at(Beginning(name, given, generation))
        return given

    def send(self, partition: int) -> SendFuture:
        return self.producer.send(self.topic, b"v", partition=partition)

    def write(self, *partitions: int) -> Place:
        """Write a record to each partition, one by one. Return where the last one is."""
        for partition in partitions:
            told = self.send(partition).result(IN_TIME)
        return Place(TopicPartition(told.topic, told.partition), told.offset)

    def prepare(self) -> PreparedTransaction:
        prepared = self.producer.prepare_transaction()
        assert prepared is not None
        return prepared

    def batch_at(self, place: Place) -> BatchHeader:
        """Return the batch that a fetch at this place begins with."""
        (topic, partition), offset, _ = place
        asked = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=topic, partitions=[asked])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)

        async def ask(deadline: Deadline) -> Any:
            leader, _ = (await self.client.leaders([place.topic_partition], deadline))[
                place.topic_partition
            ]
            return await self.client.send(request, leader, deadline, max_version=_WITH_NAMES)

        answer = self.client.run(ask(Deadline.after_ms(60_000)))
        records = answer.responses[0].partitions[0].records
        header, _ = next(batches(memoryview(records), place.topic_partition))
        return header


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def brokers(request: pytest.FixtureRequest, topic: str) -> Iterator[Brokers]:
    kafka = request.getfixturevalue("broker" if request.param == "memory" else "kafka")
    if isinstance(kafka, MemoryBroker):
        kafka.create_topic(topic, 3)
        kafka.cluster.max_message_bytes = MOST_BYTES
        address = str(kafka.address())
    else:
        kafka.create_topic(topic, 3, configs={"max.message.bytes": str(MOST_BYTES)})
        address = kafka.bootstrap_servers
    options = Settings({"kafka.bootstrap.servers": address})
    with ExitStack() as stack:
        client = stack.enter_context(KafkaClient(ClientConfig.from_settings(options)))
        producer = stack.enter_context(
            KafkaProducer(bootstrap_servers=address, transactional_id="-", linger_ms=0)
        )
        yield Brokers(client, topic, producer)


@pytest.fixture
def two(broker: MemoryBroker, client: KafkaClient) -> Iterator[Brokers]:
    """Run two brokers in memory. Each leads a partition of the topic."""
    with producing(broker, transactional_id="-") as producer:
        yield Brokers(client, "t", producer)


def write_in_turn(brokers: Brokers, _: pytest.MonkeyPatch) -> int:
    brokers.write(0, 1, 2, 1, 0)
    return brokers.write(1).offset


def write_and_lose_an_answer(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let the last batch be sent twice. The second answer tells where the first one is."""
    brokers.write(0, 2)
    handle = ProduceAnswers.handle
    lost: list[RequestInFlight] = []

    class Lost:
        def result(self) -> None:
            raise ConnectionFailedError("the answer is lost")

    def lose_one(self: ProduceAnswers, request: RequestInFlight) -> None:
        if not lost:
            request.answer.result()
            lost.append(request)
            request = replace(request, answer=Lost())  # type: ignore[arg-type]
        handle(self, request)

    monkeypatch.setattr(ProduceAnswers, "handle", lose_one)
    offset = brokers.write(1).offset
    assert lost
    return offset


def write_what_is_split(brokers: Brokers, _: pytest.MonkeyPatch) -> int:
    brokers.write(0, 2)
    values = [random.Random(number).randbytes(700) for number in range(100)]
    table = pa.table({"value": values, "partition": [1] * len(values)})
    brokers.producer.send_columns(brokers.topic, table).result(IN_TIME)
    assert brokers.producer.metrics()["batch-split-total"] > 0
    return 100


@BOTH
@pytest.mark.parametrize("write", [write_in_turn, write_and_lose_an_answer, write_what_is_split])
def test_the_place_is_the_last_batch_that_a_leader_has_taken(
    brokers: Brokers,
    write: Callable[[Brokers, pytest.MonkeyPatch], int],
    generation: Generation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All cases write to all partitions, and last to the second one."""
    brokers.begin(generation, f"{brokers.topic}-first")
    brokers.write(1)
    first = brokers.prepare()
    given = brokers.begin(generation)
    last_offset = write(brokers, monkeypatch)
    prepared = brokers.prepare()
    place = prepared.place
    assert place is not None
    assert place.topic_partition == TopicPartition(brokers.topic, 1)
    batch = brokers.batch_at(place)
    assert (batch.base_offset, batch.last_offset) == (place.offset, last_offset)
    assert (batch.producer_id, batch.producer_epoch) == given == prepared.producer
    assert (prepared.partition_count, prepared.topics) == (3, (brokers.topic,))
    assert first.place is not None
    assert first.place[:2] == (TopicPartition(brokers.topic, 1), 0)
    assert first.place.topic_id


@BOTH
def test_without_a_record_there_is_no_transaction(brokers: Brokers, generation: Generation) -> None:
    brokers.begin(generation)
    brokers.write(0)
    assert brokers.prepare().place is not None
    brokers.begin(generation)
    assert brokers.producer.prepare_transaction() is None


# -- what only brokers in memory can be made to do -------------------------------------------------

TWO = pytest.mark.memory(nodes=2, topics={"t": 2})
WITHOUT_OFFSET = answering("DUPLICATE_SEQUENCE_NUMBER")


@TWO
@BOTH
def test_an_answer_without_an_offset_tells_no_place(
    broker: MemoryBroker, two: Brokers, generation: Generation
) -> None:
    two.begin(generation, "a")
    two.write(0)
    two.prepare()
    two.begin(generation, "b")
    broker.control(ProduceRequest, WITHOUT_OFFSET)
    two.write(1)
    prepared = two.prepare()
    assert (prepared.place, prepared.topics) == (None, ("t",)), "not that of the earlier one"
    two.begin(generation, "c")
    due = two.write(0)
    broker.control(ProduceRequest, WITHOUT_OFFSET)
    two.write(1)
    place = two.prepare().place
    assert place is not None
    assert place[:2] == due[:2]


@TWO
@BOTH
def test_a_late_answer_to_an_earlier_transaction_tells_no_place(
    broker: MemoryBroker, two: Brokers, generation: Generation
) -> None:
    """Its batch has failed when its time was up, so nobody waits for the answer."""
    two.begin(generation, "a")
    two.write(0)
    held = broker.hold(ProduceRequest)
    late = two.send(0)
    broker.wait_for(ProduceRequest, 2)
    (queue,) = two.producer._accumulator.queues()
    (batch,) = queue.in_flight
    batch.created_at_seconds -= HOUR_MS
    two.producer._accumulator.wakeup.wake()
    assert isinstance(late.exception(IN_TIME), KafkaTimeoutError)
    two.begin(generation, "b")
    broker.control(ProduceRequest, WITHOUT_OFFSET)
    two.write(1)
    held.release()
    eventually(lambda: not queue.in_flight)
    assert two.prepare().place is None
    log = broker.cluster.topics["t"].logs[T0.partition]
    assert log.high_watermark == 2, "the late batch was written"


@TWO
def test_topics_are_sorted(broker: MemoryBroker, two: Brokers) -> None:
    broker.create_topic("s", 1)
    two.begin(Generation.SECOND, "a")
    two.write(1)
    place = two._replace(topic="s").write(0)
    prepared = two.prepare()
    assert prepared.place is not None
    assert (prepared.place[:2], prepared.topics) == (place[:2], ("s", "t"))
