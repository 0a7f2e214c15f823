"""Transaction coordinators on a real broker: fencing, reads, and moved coordinators."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.client import ClientConfig, Cluster, CoordinatorKey, KafkaClient
from spark_kafka_source.denials import Access
from spark_kafka_source.errors import BrokerError
from spark_kafka_source.groups import Member, OffsetAndMetadata, committed
from spark_kafka_source.net import Deadline
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.producer.errors import ProducerFencedError, TransactionAbortableError
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.producer.transaction_coordinator import (
    new_producer_id,
)
from spark_kafka_source.testing import LocalKafka, Security
from spark_kafka_source.testing.broker import Broker
from spark_kafka_source.topic_partition import TopicPartition
from tests.producer.blocking import BlockingCoordinator
from tests.producer.transactional import write
from tests.security.acls import CLUSTER, allow, deny
from tests.security.options import USERS, options_of

pytestmark = pytest.mark.kafka

TIMEOUT_MS = 60_000
NO_GENERATION = -1


def client_of(options: dict[str, str]) -> KafkaClient:
    return KafkaClient(ClientConfig.from_settings(Settings(options)), Cluster(Access.WRITE))


@pytest.fixture
def client(kafka: LocalKafka) -> Iterator[KafkaClient]:
    with client_of({"kafka.bootstrap.servers": kafka.bootstrap_servers}) as client:
        yield client


@pytest.fixture
def where(kafka: LocalKafka, topic: str) -> TopicPartition:
    kafka.create_topic(topic)
    return TopicPartition(topic, 0)


@pytest.fixture
def coordinator(client: KafkaClient, topic: str) -> BlockingCoordinator:
    """Return the coordinator for a transactional id with the topic's name."""
    return BlockingCoordinator(client, topic)


def values(
    kafka: LocalKafka, where: TopicPartition, isolation_level: str = "read_committed"
) -> list[bytes]:
    """Return all values that a reader sees so far."""
    found: list[bytes] = []
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, isolation_level=isolation_level
    ) as consumer:
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        end = consumer.end_offsets([where])[where]
        while consumer.position(where) < end:
            found += [each.value for each in consumer.poll()]
    return found


def begin(
    coordinator: BlockingCoordinator, client: KafkaClient, where: TopicPartition, *what: bytes
) -> ProducerId:
    """Begin a transaction, and write records in it."""
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    coordinator.add_partitions(producer, [where])
    write(client, where.topic, producer, where, what)
    return producer


# -- readers ---------------------------------------------------------------------------------------


def test_what_is_committed_is_seen_then_and_not_before(
    kafka: LocalKafka,
    client: KafkaClient,
    coordinator: BlockingCoordinator,
    where: TopicPartition,
) -> None:
    producer = begin(coordinator, client, where, b"a", b"b")
    write(client, where.topic, producer, where, [b"c"], base_sequence=2)
    assert values(kafka, where) == []
    assert values(kafka, where, "read_uncommitted") == [b"a", b"b", b"c"]
    coordinator.end(producer, commit=True)
    eventually_seen(kafka, where, [b"a", b"b", b"c"])


def test_what_is_aborted_is_never_seen(
    kafka: LocalKafka,
    client: KafkaClient,
    coordinator: BlockingCoordinator,
    where: TopicPartition,
) -> None:
    producer = begin(coordinator, client, where, b"no")
    coordinator.end(producer, commit=False)
    coordinator.add_partitions(producer, [where])
    write(client, where.topic, producer, where, [b"yes"], base_sequence=1)
    coordinator.end(producer, commit=True)
    eventually_seen(kafka, where, [b"yes"])
    assert values(kafka, where, "read_uncommitted") == [b"no", b"yes"]


def eventually_seen(kafka: LocalKafka, where: TopicPartition, due: list[bytes]) -> None:
    """Wait for the values: EndTxn is answered before the marker is written."""
    deadline = Deadline.after_ms(TIMEOUT_MS)
    while (found := values(kafka, where)) != due and not deadline.expired:
        assert found == due[: len(found)]
    assert found == due


def test_transactions_one_after_another(
    kafka: LocalKafka,
    client: KafkaClient,
    coordinator: BlockingCoordinator,
    where: TopicPartition,
) -> None:
    """Each waits for the end of the one before. The user never sees CONCURRENT_TRANSACTIONS."""
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    for number in range(20):
        coordinator.add_partitions(producer, [where])
        write(client, where.topic, producer, where, [b"%d" % number], base_sequence=number)
        coordinator.end(producer, commit=number % 2 == 0)
    eventually_seen(kafka, where, [b"%d" % number for number in range(0, 20, 2)])


# -- successors and fencing ------------------------------------------------------------------------


def test_a_second_producer_fences_the_first_and_aborts_what_it_has_open(
    kafka: LocalKafka,
    client: KafkaClient,
    coordinator: BlockingCoordinator,
    where: TopicPartition,
) -> None:
    first = begin(coordinator, client, where, b"no")
    second = begin(coordinator, client, where, b"yes")
    assert second.producer_id == first.producer_id
    assert second.epoch > first.epoch
    whatever: list[Callable[[], object]] = [
        lambda: coordinator.add_partitions(first, [where]),
        lambda: coordinator.add_offsets(first, where.topic),
        lambda: coordinator.end(first, commit=True),
    ]
    for step in whatever:
        with pytest.raises(ProducerFencedError, match="another producer has begun"):
            step()
    with pytest.raises(BrokerError, match="INVALID_PRODUCER_EPOCH"):
        write(client, where.topic, first, where, [b"no"], base_sequence=1)
    coordinator.end(second, commit=True)
    eventually_seen(kafka, where, [b"yes"])
    with pytest.raises(ProducerFencedError):
        coordinator.init_producer_id(TIMEOUT_MS, first)


def test_one_that_goes_on_aborts_what_is_open_even_if_it_is_fenced(
    client: KafkaClient, coordinator: BlockingCoordinator, where: TopicPartition
) -> None:
    """Kafka does so. A producer that may be fenced must end its transaction, not InitProducerId."""
    first = coordinator.init_producer_id(TIMEOUT_MS)
    second = begin(coordinator, client, where, b"no")
    with pytest.raises(ProducerFencedError):
        coordinator.init_producer_id(TIMEOUT_MS, first)
    with pytest.raises(ProducerFencedError):
        coordinator.end(second, commit=True)


def test_another_process_ends_what_it_knows_the_producer_of(
    kafka: LocalKafka,
    client: KafkaClient,
    coordinator: BlockingCoordinator,
    where: TopicPartition,
) -> None:
    producer = begin(coordinator, client, where, b"a")
    with client_of({"kafka.bootstrap.servers": kafka.bootstrap_servers}) as other:
        theirs = BlockingCoordinator(other, where.topic)
        for _ in range(2):
            theirs.end(producer, commit=True)
        with pytest.raises(BrokerError, match="INVALID_TXN_STATE"):
            theirs.end(producer, commit=False)
    eventually_seen(kafka, where, [b"a"])


def test_a_producer_goes_on_in_a_new_epoch(
    client: KafkaClient, coordinator: BlockingCoordinator, where: TopicPartition
) -> None:
    first = coordinator.init_producer_id(TIMEOUT_MS)
    second = coordinator.init_producer_id(TIMEOUT_MS, first)
    assert second == ProducerId(first.producer_id, first.epoch + 1)
    coordinator.add_partitions(second, [where])
    with pytest.raises(ProducerFencedError):
        coordinator.add_partitions(first, [where])


def test_ids_without_transactions(client: KafkaClient) -> None:
    found = [client.run(new_producer_id(client)) for _ in range(3)]
    assert len(set(found)) == 3
    assert {each.epoch for each in found} == {0}


# -- offsets ---------------------------------------------------------------------------------------


def test_offsets_are_committed_or_aborted_with_their_transaction(
    client: KafkaClient, coordinator: BlockingCoordinator, where: TopicPartition
) -> None:
    group_id = f"group-of-{where.topic}"
    nobody = Member(group_id, "", NO_GENERATION)
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    for offset, commit in ((5, True), (6, False)):
        coordinator.add_offsets(producer, group_id)
        offsets = {where: OffsetAndMetadata(offset, 3, "m" * 4096)}
        coordinator.commit_offsets(producer, nobody, offsets)
        coordinator.end(producer, commit=commit)
    # The fetch of offsets waits for the end of transactions, also without a member.
    found = client.run(committed(client, group_id, [where], member_of=lambda: nobody))
    assert found == {where: OffsetAndMetadata(5, 3, "m" * 4096)}


def test_a_member_commits_and_one_that_lost_its_partitions_cannot(
    kafka: LocalKafka,
    client: KafkaClient,
    coordinator: BlockingCoordinator,
    where: TopicPartition,
) -> None:
    group_id = f"group-of-{where.topic}"
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=group_id)
    with closing(consumer):
        consumer.subscribe([where.topic])
        while not consumer.assignment():
            consumer.poll()
        member = consumer.group_metadata()
        assert member is not None
        producer = coordinator.init_producer_id(TIMEOUT_MS)
        coordinator.add_offsets(producer, group_id)
        coordinator.commit_offsets(producer, member, {where: OffsetAndMetadata(1)})
        former = Member(group_id, member.member_id, member.generation_id - 1)
        stranger = Member(group_id, "stranger", member.generation_id)
        for other in (former, stranger):
            with pytest.raises(TransactionAbortableError, match="given the partitions to other"):
                coordinator.commit_offsets(producer, other, {where: OffsetAndMetadata(2)})
        coordinator.end(producer, commit=True)
        found = consumer.committed([where])[where]
        assert found is not None
        assert found.offset == 1


# -- coordinators that move ------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("leave", [Broker.stop, Broker.kill, Broker.pause])
def test_a_coordinator_that_goes_is_replaced(
    kafka3: LocalKafka, topic: str, leave: Callable[[Broker], None]
) -> None:
    kafka3.create_topic(topic)
    where = TopicPartition(topic, 0)
    with client_of({"kafka.bootstrap.servers": kafka3.bootstrap_servers}) as client:
        coordinator = BlockingCoordinator(client, topic)
        producer = begin(coordinator, client, where, b"a")
        key = CoordinatorKey.of_transaction(topic)
        former = client.run(client.coordinator(key, Deadline.after_ms(TIMEOUT_MS)))
        gone = kafka3.broker(former.node_id)
        leave(gone)
        try:
            coordinator.end(producer, commit=True, timeout_ms=TIMEOUT_MS)
            assert client.run(client.coordinator(key, Deadline.after_ms(TIMEOUT_MS))) != former
            coordinator.add_partitions(producer, [where], timeout_ms=TIMEOUT_MS)
            coordinator.end(producer, commit=False, timeout_ms=TIMEOUT_MS)
            eventually_seen(kafka3, where, [b"a"])
        finally:
            if gone.running:
                gone.resume()
            kafka3.start()


# -- rights ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secured() -> Iterator[LocalKafka]:
    """Run a broker where bob has few rights."""
    with LocalKafka(security=Security(USERS)) as kafka:
        deny(kafka, "bob", "WRITE", transactional_id="unwritable")
        allow(kafka, "bob", "DESCRIBE", transactional_id="unwritable")
        deny(kafka, "bob", "DESCRIBE", transactional_id="hidden")
        deny(kafka, "bob", "WRITE", topic="readable")
        allow(kafka, "bob", "READ", topic="readable")
        deny(kafka, "bob", "READ", topic="writable")
        allow(kafka, "bob", "WRITE", topic="writable")
        deny(kafka, "bob", "ALL", group="secret")
        for name in ("readable", "writable"):
            kafka.create_topic(name)
        yield kafka


@pytest.fixture
def bob(secured: LocalKafka) -> Iterator[KafkaClient]:
    with client_of(options_of(secured, "SASL_PLAINTEXT", "PLAIN", user="bob")) as client:
        yield client


@pytest.mark.parametrize("name", ["unwritable", "hidden"])
def test_a_right_to_the_transactional_id_is_named(bob: KafkaClient, name: str) -> None:
    with pytest.raises(BrokerError, match=f"needs WRITE on transactional id '{name}'"):
        BlockingCoordinator(bob, name).init_producer_id(TIMEOUT_MS)


def test_a_right_to_what_a_transaction_writes_is_named(bob: KafkaClient, topic: str) -> None:
    coordinator = BlockingCoordinator(bob, topic)
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    both = [TopicPartition("readable", 0), TopicPartition("writable", 0)]
    with pytest.raises(TransactionAbortableError, match="needs WRITE on topic 'readable'"):
        coordinator.add_partitions(producer, both)
    coordinator.add_partitions(producer, both[1:])


def test_a_right_to_a_transactions_offsets_is_named(bob: KafkaClient, topic: str) -> None:
    coordinator = BlockingCoordinator(bob, topic)
    producer = coordinator.init_producer_id(TIMEOUT_MS)
    with pytest.raises(TransactionAbortableError, match="needs READ on group 'secret'"):
        coordinator.add_offsets(producer, "secret")
    coordinator.add_offsets(producer, topic)
    nobody, offset = Member(topic, "", NO_GENERATION), OffsetAndMetadata(1)
    with pytest.raises(TransactionAbortableError, match="needs READ on topic 'writable'"):
        coordinator.commit_offsets(producer, nobody, {TopicPartition("writable", 0): offset})
    coordinator.commit_offsets(producer, nobody, {TopicPartition("readable", 0): offset})


def test_a_right_to_be_idempotent_is_named(secured: LocalKafka, bob: KafkaClient) -> None:
    """A user who may write to any topic has this right."""
    assert bob.run(new_producer_id(bob)).producer_id >= 0
    deny(secured, "bob", "WRITE", topic="writable")
    deny(secured, "bob", "IDEMPOTENT_WRITE", broker=CLUSTER)
    deny(secured, "bob", "WRITE", topic="*")
    with pytest.raises(BrokerError, match="needs IDEMPOTENT_WRITE on the cluster"):
        bob.run(new_producer_id(bob))
