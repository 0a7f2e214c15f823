"""A MemoryKafka serves real clients without a JVM, and causes faults on demand."""

import inspect
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from spark_kafka_source import (
    KafkaAdmin,
    KafkaConsumer,
    KafkaProducer,
    ProducerFencedError,
    RecordsLostError,
    read_topic,
)
from spark_kafka_source.errors import (
    BrokerError,
    ClosedError,
    ConfigurationError,
    KafkaTimeoutError,
    error_named,
)
from spark_kafka_source.forks import ForkedError
from spark_kafka_source.protocol import versions
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.membership import ConsumerGroupHeartbeatRequest
from spark_kafka_source.testing import Broker, LocalKafka, MemoryKafka, MemoryKafkaBroker
from spark_kafka_source.testing.memory.consumer_coordinator import consumer_group_heartbeat
from spark_kafka_source.testing.memory.handlers import HANDLERS
from spark_kafka_source.testing.memory_kafka import _APIS
from spark_kafka_source.topic_partition import TopicPartition
from tests.forking import forking, in_child, raised_in_child
from tests.protocol.messages import sample
from tests.spark_session import Start
from tests.testing.traffic import TIMEOUT_SECONDS, consume, produce

PATIENCE_MS = 20_000
LONG_MS = PATIENCE_MS + 8_000
VALUES = [b"a", b"b", b"c"]
T0 = TopicPartition("t", 0)


@pytest.fixture
def memory() -> Iterator[MemoryKafka]:
    with MemoryKafka() as kafka:
        kafka.create_topic("t")
        yield kafka


@pytest.fixture
def three() -> Iterator[MemoryKafka]:
    """Three brokers. Broker 1 leads `t-0`, and coordinates groups and transactions."""
    with MemoryKafka(3) as kafka:
        kafka.create_topic("t", 3)
        yield kafka


def producing(kafka: MemoryKafka, **settings: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, **settings)


def consuming(kafka: MemoryKafka, **settings: Any) -> KafkaConsumer:
    start = {"auto_offset_reset": "earliest", **settings}
    return KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **start)


def send(kafka: MemoryKafka, *values: bytes, topic: str = "t") -> None:
    with producing(kafka) as producer:
        for future in [producer.send(topic, each, partition=0) for each in values]:
            future.result(PATIENCE_MS / 1000)


def values(kafka: MemoryKafka, topic: str = "t", **settings: Any) -> list[bytes]:
    """Return all values of a topic, in order of partition and offset."""
    columns = ["partition", "offset", "value"]
    table = read_topic(
        topic, bootstrap_servers=kafka.bootstrap_servers, columns=columns, **settings
    )
    rows = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    return [bytes(each) for each in rows["value"].to_pylist()]


def polled(consumer: KafkaConsumer, count: int = 1) -> list[bytes]:
    """Return the values of the next records."""
    found: list[bytes] = []
    until = time.monotonic() + PATIENCE_MS / 1000
    while len(found) < count:
        assert time.monotonic() < until
        found += [bytes(each.value) for each in consumer.poll(timeout_ms=1_000)]
    return found


# -- clients ---------------------------------------------------------------------------------------


def test_has_the_methods_of_a_local_kafka_with_the_same_parameters() -> None:
    of_a_jvm = {"properties", "log_dir", "log", "formatted", "pid"}
    needs_a_jvm = {"tool", "allow", "deny", "add_scram_user", "delegation_token"}
    needs_security = {"bootstrap_servers_of", "authority", "token_server"}
    pairs: list[tuple[type, type, set[str]]] = [
        (LocalKafka, MemoryKafka, needs_a_jvm | needs_security),
        (Broker, MemoryKafkaBroker, of_a_jvm),
    ]
    for theirs, ours, other in pairs:
        public = {name for name in vars(theirs) if not name.startswith("_")} - other
        for name in public:
            assert hasattr(ours, name), name
            member = getattr(theirs, name)
            if inspect.isfunction(member):
                parameters = inspect.signature(member).parameters
                assert list(parameters) == list(inspect.signature(getattr(ours, name)).parameters)


def test_a_group_reads_each_record_once_and_goes_on_from_its_commit(memory: MemoryKafka) -> None:
    memory.create_partitions("t", 2)
    send(memory, *VALUES)
    with consuming(memory, group_id="g") as consumer:
        consumer.subscribe(["t"])
        assert polled(consumer, 3) == VALUES
        consumer.commit()
    send(memory, b"later")
    with consuming(memory, group_id="g") as consumer:
        consumer.subscribe(["t"])
        assert polled(consumer) == [b"later"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_members_share_the_partitions(memory: MemoryKafka, protocol: str) -> None:
    memory.create_topic("shared", 4)
    settings = {"group_id": "g", "group_protocol": protocol}
    with consuming(memory, **settings) as one, consuming(memory, **settings) as other:
        members = (one, other)
        for member in members:
            member.subscribe(["shared"])
        until = time.monotonic() + PATIENCE_MS / 1000
        while sorted(len(member.assignment()) for member in members) != [2, 2]:
            assert time.monotonic() < until
            for member in members:
                member.poll(timeout_ms=50)
        assert not one.assignment() & other.assignment()


def test_a_member_that_is_silent_for_its_session_loses_its_partitions(memory: MemoryKafka) -> None:
    memory.create_topic("shared", 2)
    cluster = memory._entered().cluster
    ours, other = (
        ConsumerGroupHeartbeatRequest(
            "g",
            member_id,
            rebalance_timeout_ms=PATIENCE_MS,
            subscribed_topic_names=["shared"],
            topic_partitions=[],
        )
        for member_id in ("ours", "other")
    )

    def beat(request: ConsumerGroupHeartbeatRequest) -> set[str]:
        """Return the members in the same step of the broker, before a session can end."""

        def step() -> set[str]:
            consumer_group_heartbeat(cluster, 1, request, 1)
            return members()

        return memory._entered().call(step)

    def members() -> set[str]:
        return set(memory._entered().consumer_group("g").members)

    def shares() -> list[int]:
        targets = memory._entered().consumer_group("g").targets
        return [len(each) for each in targets.values()]

    cluster.consumer_session_timeout_ms = PATIENCE_MS
    beat(ours)
    cluster.consumer_session_timeout_ms = 100
    assert beat(other) == {"ours", "other"}
    until = time.monotonic() + PATIENCE_MS / 1000
    while memory._entered().call(members) != {"ours"}:
        assert time.monotonic() < until
    assert memory._entered().call(shares) == [2]
    cluster.consumer_session_timeout_ms = PATIENCE_MS
    assert beat(ours) == {"ours"}


def test_only_committed_transactions_are_read(memory: MemoryKafka) -> None:
    with producing(memory, transactional_id="t-1") as producer:
        producer.init_transactions()
        for value, commits in [(b"in", True), (b"out", False), (b"also in", True)]:
            producer.begin_transaction()
            producer.send("t", value).result(PATIENCE_MS / 1000)
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    assert values(memory, isolation_level="read_committed") == [b"in", b"also in"]
    assert values(memory, isolation_level="read_uncommitted") == [b"in", b"out", b"also in"]


def test_admin_describes_groups_and_topics(three: MemoryKafka) -> None:
    send(three, *VALUES)
    with consuming(three, group_id="g") as consumer:
        consumer.subscribe(["t"])
        polled(consumer)
        consumer.commit()
    with KafkaAdmin(bootstrap_servers=three.bootstrap_servers) as admin:
        assert [each.group_id for each in admin.list_groups()] == ["g"]
        assert [each.name for each in admin.list_topics()] == ["t"]
        three.delete_topic("t")
        assert admin.list_topics() == []
        three.create_topic("u", configs={"cleanup.policy": "compact"})
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
            three.create_topic("u")


def test_serves_a_client_that_shares_no_code_with_this_package(memory: MemoryKafka) -> None:
    produce(memory.bootstrap_servers, "t", VALUES)
    assert consume(memory.bootstrap_servers, "t", 3, group="g") == VALUES


def test_serves_groups_transactions_and_admin_of_confluent_kafka(memory: MemoryKafka) -> None:
    servers: dict[str, str | int | float | bool]
    servers = {"bootstrap.servers": memory.bootstrap_servers, "log_level": 0}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic("u", 2)])["u"].result(TIMEOUT_SECONDS)
    producer = ck.Producer({**servers, "transactional.id": "x"})
    producer.init_transactions(TIMEOUT_SECONDS)
    for value, commits in [(b"out", False), (b"in", True)]:
        producer.begin_transaction()
        producer.produce("u", value, partition=1)
        producer.flush(TIMEOUT_SECONDS)
        end = producer.commit_transaction if commits else producer.abort_transaction
        end(TIMEOUT_SECONDS)
    consumer = ck.Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["u"])
    (message,) = consumer.consume(1, TIMEOUT_SECONDS)
    consumer.commit(message=message, asynchronous=False)
    consumer.close()
    assert (message.value(), message.partition()) == (b"in", 1)


def test_lists_all_topics_to_confluent_kafka(memory: MemoryKafka) -> None:
    memory.create_topic("u", 2)
    admin = AdminClient({"bootstrap.servers": memory.bootstrap_servers, "log_level": 0})
    found = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    assert {name: len(topic.partitions) for name, topic in found.items()} == {"t": 1, "u": 2}


@pytest.mark.spark
def test_spark_reads_a_batch_and_a_stream_writes_each_row_once(
    memory: MemoryKafka, spark: SparkSession, start: Start
) -> None:
    memory.create_topic("copies", 2)
    produce(memory.bootstrap_servers, "t", VALUES)
    servers = {"kafka.bootstrap.servers": memory.bootstrap_servers}
    reading = {**servers, "subscribe": "t", "startingOffsets": "earliest"}
    assert spark.read.format("pykafka").options(**reading).load().count() == len(VALUES)

    rows = spark.readStream.format("pykafka").options(**reading).load().select("key", "value")
    once = {**servers, "topic": "copies", "deliveryGuarantee": "exactly-once"}
    writer = rows.writeStream.format("pykafka").options(**once)
    query = start(writer)
    query.processAllAvailable()
    query.stop()
    produce(memory.bootstrap_servers, "t", [b"d"])
    memory.lose_answers("Produce")
    memory.lose_answers("EndTxn")
    start(writer).processAllAvailable()
    copies = values(memory, "copies", isolation_level="read_committed")
    assert sorted(copies) == [*VALUES, b"d"]


# -- faults ----------------------------------------------------------------------------------------


def test_a_refused_request_has_no_effect_and_is_tried_again(memory: MemoryKafka) -> None:
    memory.refuse("Produce", "NOT_ENOUGH_REPLICAS", times=2)
    send(memory, *VALUES)
    assert values(memory) == VALUES


def test_a_request_is_refused_until_heal(memory: MemoryKafka) -> None:
    memory.refuse("Produce", "TOPIC_AUTHORIZATION_FAILED", times=None)
    for _ in range(3):
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
            send(memory, b"refused")
    memory.heal()
    send(memory, *VALUES)
    assert values(memory) == VALUES


def test_a_lost_answer_duplicates_nothing_of_an_idempotent_producer(memory: MemoryKafka) -> None:
    memory.lose_answers("Produce")
    send(memory, b"a")
    assert values(memory) == [b"a"]
    memory.lose_answers("Produce")
    with producing(memory, enable_idempotence=False) as producer:
        producer.send("t", b"b").result(PATIENCE_MS / 1000)
    assert values(memory) == [b"a", b"b", b"b"]


def test_a_paused_broker_is_silent_until_it_resumes(memory: MemoryKafka) -> None:
    with producing(memory) as producer:
        producer.send("t", b"a").result(PATIENCE_MS / 1000)
        memory.pause()
        assert memory.broker(1).running
        sent = producer.send("t", b"b")
        with pytest.raises(KafkaTimeoutError):
            sent.result(0.1)
        memory.resume()
        assert sent.result(PATIENCE_MS / 1000).offset == 1


def test_others_lead_the_partitions_of_a_killed_broker(three: MemoryKafka) -> None:
    send(three, b"a")
    three.broker(1).kill()
    assert not three.broker(1).running
    send(three, b"b")
    three.broker(1).start()
    three.broker(2).kill()
    three.broker(3).kill()
    send(three, b"c")
    assert values(three) == [b"a", b"b", b"c"]


def test_a_group_goes_on_with_another_coordinator(three: MemoryKafka) -> None:
    send(three, b"a")
    with consuming(three, group_id="g") as consumer:
        consumer.subscribe(["t"])
        assert polled(consumer) == [b"a"]
        consumer.commit()
        three.broker(1).kill()
        send(three, b"b")
        assert polled(consumer) == [b"b"]
        consumer.commit()
        committed = consumer.committed([T0])[T0]
        assert committed is not None
        assert committed.offset == 2


def test_records_and_groups_stay_while_all_brokers_restart(memory: MemoryKafka) -> None:
    servers = memory.bootstrap_servers
    send(memory, b"a")
    memory.restart()
    assert memory.bootstrap_servers == servers
    send(memory, b"b")
    assert values(memory) == [b"a", b"b"]


def test_a_disconnected_client_connects_again(memory: MemoryKafka) -> None:
    with producing(memory) as producer:
        for value in VALUES:
            producer.send("t", value).result(PATIENCE_MS / 1000)
            memory.broker(1).disconnect()
    assert values(memory) == VALUES
    with socket.create_connection(("127.0.0.1", port(memory)), TIMEOUT_SECONDS) as connection:
        memory.broker(1).disconnect()
        assert connection.recv(1) == b""


def port(kafka: MemoryKafka) -> int:
    return int(kafka.bootstrap_servers.rpartition(":")[2])


def leader(kafka: MemoryKafka) -> int:
    """Return the leader of `t-0` that brokers tell clients."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    found: int = admin.list_topics("t", timeout=TIMEOUT_SECONDS).topics["t"].partitions[0].leader
    return found


def test_a_moved_leader_takes_the_records(three: MemoryKafka) -> None:
    with producing(three) as producer:
        for node_id in (2, 3, 1):
            producer.send("t", str(node_id).encode(), partition=0).result(PATIENCE_MS / 1000)
            three.move_leader(T0, node_id)
            assert leader(three) == node_id
    assert values(three) == [b"2", b"3", b"1"]


def test_a_transaction_that_timed_out_is_aborted_and_its_producer_fenced(
    memory: MemoryKafka,
) -> None:
    with producing(memory, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"out").result(PATIENCE_MS / 1000)
        memory.time_out_transaction("x")
        with pytest.raises(ProducerFencedError):
            producer.commit_transaction()
    send(memory, b"in")
    assert values(memory, isolation_level="read_committed") == [b"in"]
    with pytest.raises(ConfigurationError, match="'x' has no open transaction"):
        memory.time_out_transaction("x")


def test_deleted_records_are_out_of_range(memory: MemoryKafka) -> None:
    send(memory, *VALUES)
    with consuming(memory, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 0)
        memory.delete_records({T0: 2})
        with pytest.raises(RecordsLostError):
            consumer.poll(timeout_ms=PATIENCE_MS)
    assert values(memory) == VALUES[2:]
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
        memory.delete_records({T0: 4})


def test_a_topic_made_anew_has_nothing_of_the_former_one(memory: MemoryKafka) -> None:
    memory.create_topic("u", configs={"cleanup.policy": "compact"})
    send(memory, *VALUES, topic="u")
    with consuming(memory, group_id="g") as consumer:
        consumer.subscribe(["u"])
        assert polled(consumer, 3) == VALUES
        consumer.commit()
    memory.delete_topic("u")
    assert memory._memory is not None
    assert "u" not in memory._memory.cluster.topic_settings
    memory.create_topic("u")
    later = [b"d", b"e", b"f", b"g"]
    send(memory, *later, topic="u")
    with consuming(memory, group_id="g") as consumer:
        consumer.subscribe(["u"])
        assert polled(consumer, 4) == later


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic(".", 1), "TOPIC_EXCEPTION"),
        (NewTopic("a b", 1), "TOPIC_EXCEPTION"),
        (NewTopic("a" * 250, 1), "TOPIC_EXCEPTION"),
        (NewTopic("a.b", 1), "TOPIC_EXCEPTION"),
        (NewTopic("u", 0), "INVALID_PARTITIONS"),
        (NewTopic("u", 1, config={"retention": "5"}), "INVALID_CONFIG"),
        (NewTopic("u", 1, config={"retention.ms": "long"}), "INVALID_CONFIG"),
    ],
)
def test_refuses_topics_as_kafka_does(memory: MemoryKafka, topic: Any, error: str) -> None:
    memory.create_topic("a_b")
    admin = AdminClient({"bootstrap.servers": memory.bootstrap_servers, "log_level": 0})
    with pytest.raises(ck.KafkaException) as raised:
        admin.create_topics([topic])[topic.topic].result(TIMEOUT_SECONDS)
    assert raised.value.args[0].name() == error


def test_no_topic_gets_an_invalid_name_by_itself() -> None:
    with MemoryKafka(auto_create_topics=True) as kafka:
        kafka.create_topic("a_b")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        for name in ("a.b", "a/b"):
            admin.list_topics(name, timeout=TIMEOUT_SECONDS)
        assert set(kafka._entered().cluster.topics) == {"a_b"}


def test_shows_as_many_replicas_as_were_asked_for(three: MemoryKafka) -> None:
    three.create_topic("two", 3, replication_factor=2)
    three.create_topic("default")
    three.broker(3).stop()
    admin = AdminClient({"bootstrap.servers": three.bootstrap_servers, "log_level": 0})
    placed = NewTopic("placed", 2, replica_assignment=[[2, 1], [1, 2]])
    admin.create_topics([placed])["placed"].result(TIMEOUT_SECONDS)
    found = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    partitions = found["two"].partitions
    assert [partitions[each].replicas for each in range(3)] == [[1, 2], [2, 3], [1, 2]]
    assert [partitions[each].isrs for each in range(3)] == [[1, 2], [2], [1, 2]]
    assert found["default"].partitions[0].replicas == [1, 2, 3]
    assert [found["placed"].partitions[each].leader for each in range(2)] == [2, 1]
    assert len(found["placed"].partitions[0].replicas) == 2


# -- the cluster itself ----------------------------------------------------------------------------


def test_a_waiting_fetch_is_answered_by_the_next_record(memory: MemoryKafka) -> None:
    broker = memory._entered()
    broker.held_step_seconds = LONG_MS / 1000  # Nothing else ends the wait.
    broker._keeps_requests = True
    with consuming(memory, fetch_max_wait_ms=LONG_MS) as consumer:
        consumer.assign([T0])
        while not broker.requests(FetchRequest):
            consumer.poll(timeout_ms=50)
        send(memory, b"a")
        assert polled(consumer) == [b"a"]


def test_requests_are_not_kept(memory: MemoryKafka) -> None:
    send(memory, *VALUES)
    assert memory._memory is not None
    assert memory._memory.seen == []


def test_a_mistyped_topic_is_not_made() -> None:
    for creates in (False, True):
        with MemoryKafka(auto_create_topics=creates) as kafka:
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
            admin.list_topics("t", timeout=TIMEOUT_SECONDS)
            error = admin.list_topics("t", timeout=TIMEOUT_SECONDS).topics["t"].error
            assert (error is None) is creates


def test_nothing_remains_after_the_context() -> None:
    with MemoryKafka(2) as kafka:
        servers = kafka.bootstrap_servers
        assert servers.count("127.0.0.1:") == 2
        assert repr(kafka.broker(2)).startswith("MemoryKafkaBroker(2, '127.0.0.1:")
    assert "memory-broker" not in {each.name for each in threading.enumerate()}
    with pytest.raises(ClosedError, match="use it in a `with` statement"):
        kafka.create_topic("t")


def test_wrong_arguments_are_named(memory: MemoryKafka) -> None:
    with pytest.raises(ConfigurationError, match="Option 'brokers': 0"):
        MemoryKafka(0)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: memory.broker(2), "there is no broker 2. Their ids are 1 to 1"),
        (lambda: memory.refuse("Prodce", "X"), "there is no 'Prodce'. Give one of Fetch, "),
        (lambda: memory.refuse("Produce", "X"), "Kafka has no error 'X'"),
        (lambda: memory.refuse("Produce", "NONE"), "Kafka has no error 'NONE'"),
        (lambda: memory.refuse("Produce", "REQUEST_TIMED_OUT", times=0), "Option 'times': 0"),
        (lambda: memory.lose_answers("Produce", times=-1), "Option 'times': -1"),
        (memory.__enter__, "its context is entered already"),
        (lambda: memory.lose_answers("Produce", node_id=0), "there is no broker 0"),
        (lambda: memory.move_leader(T0, 3), "there is no broker 3"),
        (lambda: memory.move_leader(TopicPartition("t", 1), 1), "there is no partition t-1"),
    ]
    for call, text in calls:
        with pytest.raises(ConfigurationError) as raised:
            call()
        assert text in str(raised.value)


def test_a_broker_that_does_not_run_leads_nothing(three: MemoryKafka) -> None:
    three.broker(2).stop()
    with pytest.raises(ConfigurationError, match="broker 2 does not run"):
        three.move_leader(T0, 2)


@forking
def test_a_fork_may_talk_to_the_brokers_but_not_change_them(memory: MemoryKafka) -> None:
    changes: list[Callable[[], object]] = [
        lambda: memory.refuse("Produce", "NOT_ENOUGH_REPLICAS"),
        lambda: memory.lose_answers("Produce"),
        lambda: memory.move_leader(T0, 1),
        memory.heal,
        memory.pause,
        memory.stop,
        memory.broker(1).disconnect,
    ]
    for change in changes:
        error = raised_in_child(change)
        assert isinstance(error, ForkedError)
        assert "This MemoryKafka was made by process" in str(error)
    in_child(lambda: memory.create_topic("u"))
    send(memory, *VALUES, topic="u")
    assert in_child(lambda: values(memory, "u")) == VALUES


@pytest.mark.parametrize("api", _APIS)
def test_each_api_can_be_refused_in_each_version(api: str, memory: MemoryKafka) -> None:
    assert memory._memory is not None
    cluster = memory._memory.cluster
    refusing: Any = replace(cluster, refusal=error_named("POLICY_VIOLATION").code)
    request_type = _APIS[api]
    spoken = cluster.versions[request_type.KEY].common(versions(request_type))
    for version in range(spoken.lowest, spoken.highest + 1):
        request = sample(request_type, version)
        if isinstance(request, FetchRequest):
            request.session_id, request.session_epoch = 0, -1
        if isinstance(request, FindCoordinatorRequest):
            request.key_type = 0
        answer = HANDLERS[request_type](refusing, 1, request, version)
        assert f"={refusing.refusal}" in repr(answer), version


@pytest.mark.parametrize("api", _APIS)
def test_a_request_with_any_values_is_no_failure_of_the_broker(
    api: str, memory: MemoryKafka
) -> None:
    cluster, request_type = memory._entered().cluster, _APIS[api]
    spoken = cluster.versions[request_type.KEY].common(versions(request_type))
    for version in range(spoken.lowest, spoken.highest + 1):
        request = sample(request_type, version)

        def handle(request: Any = request, version: int = version) -> None:
            answer = HANDLERS[request_type](cluster, 1, request, version)
            if inspect.iscoroutine(answer):
                answer.close()

        memory._entered().call(handle)


def test_needs_neither_pytest_nor_hypothesis() -> None:
    import spark_kafka_source.testing.memory as package  # noqa: PLC0415

    for module in Path(package.__path__[0]).glob("*.py"):
        assert "pytest" not in module.read_text()
        assert "hypothesis" not in module.read_text()


def test_brokers_are_of_a_public_type(memory: MemoryKafka) -> None:
    assert [type(each) for each in memory.brokers] == [MemoryKafkaBroker]
