"""A `KafkaConsumer` on real brokers, compared with confluent-kafka and Kafka's own tools."""

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck
import pytest

from spark_kafka_source import KafkaConsumer, TopicPartition
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.records import Codec, Record
from spark_kafka_source.testing import LocalKafka, Producer
from tests.documentation.pages import DOCS, blocks

pytestmark = pytest.mark.kafka

PATIENCE_SECONDS = 120
PAGE = DOCS / "contributors" / "clients-in-detail.md"


@contextmanager
def consuming(kafka: LocalKafka, *topics: str, **config: Any) -> Iterator[KafkaConsumer]:
    defaults: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        # The session has its usual length: a member that gets no turn for seconds stays.
        "heartbeat_interval_ms": 300,
    }
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **defaults | config) as consumer:
        if topics:
            consumer.subscribe(topics)
        yield consumer


def poll_until(done: Callable[[], bool], *consumers: KafkaConsumer) -> list[Any]:
    """Poll all consumers in turn. Return all their records as partition, offset and value."""
    found: list[Any] = []
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < until_seconds, [each.assignment() for each in consumers]
        for each in consumers:
            found += rows(each.poll(timeout_ms=50))
    return found


def read(consumer: KafkaConsumer, count: int) -> list[Any]:
    found: list[Any] = []
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count:
        assert time.monotonic() < until_seconds, f"{len(found)} of {count} came"
        found += rows(consumer.poll(timeout_ms=200))
    return found


def rows(records: Any) -> list[Any]:
    return [(each.partition, each.offset, each.value) for each in records]


def write(kafka: LocalKafka, topic: str, count: int, partitions: int = 1) -> None:
    """Write `count` records to each partition, in batches of ten with various codecs."""
    with Producer(kafka.bootstrap_servers) as producer:
        for partition in range(partitions):
            for number, codec in zip(range(count // 10), [*Codec] * count, strict=False):
                values = [f"{number}-{each}".encode() for each in range(10)]
                producer.send(topic, partition, [Record(value=each) for each in values], codec)


def new_group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


def shown_offsets(kafka: LocalKafka, *groups: str) -> dict[str, dict[int, int]]:
    """Return committed offsets by group and partition, from kafka-consumer-groups."""
    named = [argument for group in groups for argument in ("--group", group)]
    lines = kafka.tool("consumer-groups", "--describe", *named).splitlines()
    rows = [line.split() for line in lines if line.startswith(groups)]
    return {
        group: {int(row[2]): int(row[3]) for row in rows if row[0] == group and row[3] != "-"}
        for group in groups
    }


def test_the_same_records_positions_and_commits_as_confluent_kafka(
    kafka: LocalKafka, topic: str
) -> None:
    kafka.create_topic(topic, 3)
    write(kafka, topic, 200, 3)
    ours, theirs = new_group(), new_group()
    peer = ck.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": theirs,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    peer.subscribe([topic])
    expected = [(m.partition(), m.offset(), m.value()) for m in peer.consume(600, PATIENCE_SECONDS)]
    peer.commit(asynchronous=False)
    with consuming(kafka, topic, group_id=ours, enable_auto_commit=False) as consumer:
        assert sorted(read(consumer, 600)) == sorted(expected)
        for each in peer.position([ck.TopicPartition(topic, p) for p in range(3)]):
            assert consumer.position(TopicPartition(topic, each.partition)) == each.offset == 200
        consumer.commit()
    peer.close()
    everywhere = dict.fromkeys(range(3), 200)
    assert shown_offsets(kafka, ours, theirs) == {ours: everywhere, theirs: everywhere}
    with consuming(kafka, topic, group_id=theirs) as consumer:
        poll_until(lambda: len(consumer.assignment()) == 3, consumer)
        assert consumer.position(TopicPartition(topic, 0)) == 200


def test_a_session_sends_only_what_changes(
    kafka: LocalKafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker reports no error for any request."""
    from spark_kafka_source.fetch import session  # noqa: PLC0415

    seen: list[FetchRequest] = []

    def noted(**values: Any) -> FetchRequest:
        seen.append(FetchRequest(**values))
        return seen[-1]

    monkeypatch.setattr(session, "FetchRequest", noted)
    kafka.create_topic(topic, 20)
    with consuming(kafka, fetch_max_wait_ms=20) as consumer:
        consumer.assign([TopicPartition(topic, each) for each in range(20)])
        # A broker leads new partitions some ms late. The consumer would read others meanwhile.
        for each in consumer.assignment():
            consumer.position(each)
        until_seconds = time.monotonic() + PATIENCE_SECONDS
        while len(seen) < 10 and time.monotonic() < until_seconds:
            consumer.poll(timeout_ms=50)
        write(kafka, topic, 10)
        read(consumer, 10)
        for _ in range(5):
            consumer.poll(timeout_ms=30)
    sizes = [sum(len(each.partitions) for each in request.topics) for request in seen]
    assert [request.session_epoch for request in seen[:-1]] == list(range(len(seen) - 1))
    assert seen[-1].session_epoch == -1, "said goodbye"
    assert sizes[0] == 20
    assert sum(sizes[1:]) == 1, "the one partition that had records"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"partition_assignment_strategy": "cooperative-sticky"},
        {"group_protocol": "consumer"},
    ],
    ids=["eager", "cooperative", "kip848"],
)
def test_two_members_share_and_take_over(
    kafka: LocalKafka, topic: str, config: dict[str, Any]
) -> None:
    kafka.create_topic(topic, 4)
    write(kafka, topic, 20, 4)
    config = {"group_id": new_group(), "auto_commit_interval_ms": 100, **config}
    with consuming(kafka, topic, **config) as one:
        found = read(one, 80)
        with consuming(kafka, topic, **config) as two:
            found += poll_until(
                lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two
            )
            write(kafka, topic, 10, 4)
            until_seconds = time.monotonic() + PATIENCE_SECONDS
            while len(found) < 120 and time.monotonic() < until_seconds:
                for each in (one, two):
                    found += rows(each.poll(timeout_ms=50))
        found += poll_until(lambda: len(one.assignment()) == 4, one)
        write(kafka, topic, 10, 4)
        found += read(one, 40)
    assert sorted((p, o) for p, o, _ in found) == [(p, o) for p in range(4) for o in range(40)]
    with consuming(kafka, **config) as after:
        partitions = [TopicPartition(topic, each) for each in range(4)]
        committed = after.committed(partitions).values()
        assert [each and each.offset for each in committed] == [40] * 4


def test_a_static_member_that_comes_back_keeps_its_partitions(
    kafka: LocalKafka, topic: str
) -> None:
    kafka.create_topic(topic, 2)
    write(kafka, topic, 10, 2)
    config = {"group_id": new_group(), "fetch_max_wait_ms": 50}
    with consuming(kafka, topic, group_instance_id="a", **config) as a:
        with consuming(kafka, topic, group_instance_id="b", **config) as b:
            poll_until(lambda: len(a.assignment()) == len(b.assignment()) == 1, a, b)
            mine, generation = b.assignment(), b.group_metadata()
        with consuming(kafka, topic, group_instance_id="b", **config) as b:
            poll_until(lambda: bool(b.assignment()), a, b)
            again = b.group_metadata()
            assert b.assignment() == mine
            assert generation is not None
            assert again is not None
            assert again.generation_id == generation.generation_id


def by_weight(weight: int) -> Any:
    """Return an assignor of the page."""
    (source,) = (each.source for each in blocks(PAGE) if "class ByWeight" in each.source)
    names: dict[str, Any] = {}
    exec(source[: source.index("with KafkaConsumer")], names)
    return names["ByWeight"](weight)


def noting(seen: list[Any], divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def assign(cluster: Any, subscriptions: Any) -> Any:
        seen.append(cluster)
        return divide(cluster, subscriptions)

    return assign


def test_an_assignor_of_ones_own_beside_a_member_that_does_not_have_it(
    kafka: LocalKafka, topic: str
) -> None:
    kafka.create_topic(topic, 6)
    group = new_group()
    heavy, light = by_weight(2), by_weight(1)
    seen = list[Any]()
    for each in (heavy, light):
        each.assign = noting(seen, each.assign)
    with (
        consuming(kafka, topic, group_id=group, assignors=[heavy, "range"]) as one,
        consuming(kafka, topic, group_id=group, assignors=[light, "range"]) as two,
    ):
        poll_until(lambda: (len(one.assignment()), len(two.assignment())) == (4, 2), one, two)
        assert [each.partition for each in seen[-1][topic]] == list(range(6))
        assert all(each.leader_id in each.replica_ids for each in seen[-1][topic])
        with consuming(kafka, topic, group_id=group, partition_assignment_strategy="range") as peer:
            members = (one, two, peer)
            poll_until(lambda: [len(each.assignment()) for each in members] == [2, 2, 2], *members)
        poll_until(lambda: (len(one.assignment()), len(two.assignment())) == (4, 2), one, two)


class _AtStored:
    """A listener that goes on at offsets of its own, for a consumer that it does not know yet."""

    def on_partitions_revoked(self, partitions: Any) -> None:
        """Nothing is to be stored."""

    def on_partitions_assigned(self, consumer: KafkaConsumer, partitions: Any) -> None:
        consumer.seek({each: 15 + each.partition for each in partitions})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_listener_that_is_given_first_gets_the_consumer(
    kafka: LocalKafka, topic: str, protocol: str
) -> None:
    kafka.create_topic(topic, 2)
    write(kafka, topic, 20, 2)
    config: dict[str, Any] = {"group_protocol": protocol, "listener": _AtStored()}
    with consuming(kafka, topic, group_id=new_group(), **config) as consumer:
        found = sorted((p, offset) for p, offset, _ in read(consumer, 9))
        assert found == [*((0, each) for each in range(15, 20)), *((1, at) for at in range(16, 20))]
        ends = consumer.position([TopicPartition(topic, each) for each in range(2)])
        assert list(ends.values()) == [20, 20]


_MEMBER = """
import sys
from spark_kafka_source import KafkaConsumer
with KafkaConsumer(bootstrap_servers=sys.argv[1], group_id=sys.argv[2],
                   session_timeout_ms=6000, heartbeat_interval_ms=300) as consumer:
    consumer.subscribe([sys.argv[3]])
    while True:
        consumer.poll(timeout_ms=100)
        if consumer.assignment():
            print("in", flush=True)
"""


@pytest.mark.reliability_full
def test_others_take_over_from_a_member_that_is_killed(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic, 2)
    group = new_group()
    command = [sys.executable, "-c", _MEMBER, kafka.bootstrap_servers, group, topic]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as member,
        consuming(kafka, topic, group_id=group) as one,
    ):
        assert member.stdout is not None
        assert member.stdout.readline() == b"in\n"
        poll_until(lambda: len(one.assignment()) == 1, one)
        member.send_signal(signal.SIGKILL)
        poll_until(lambda: len(one.assignment()) == 2, one)


@pytest.mark.long
def test_leaders_that_move_and_a_broker_that_restarts_in_mid_read(
    kafka3: LocalKafka, topic: str
) -> None:
    kafka3.create_topic(topic, 3)
    found: list[Any] = []
    with consuming(kafka3, topic, group_id=new_group(), max_poll_records=50) as consumer:
        write(kafka3, topic, 100, 3)
        found += read(consumer, 60)
        kafka3.broker(2).stop()
        write(kafka3, topic, 50, 3)
        found += read(consumer, 300)
        kafka3.start()
        write(kafka3, topic, 50, 3)
        found += read(consumer, 600 - len(found))
        for partition in range(3):
            mine = [offset for p, offset, _ in found if p == partition]
            assert mine == sorted(set(mine)), "in order, none twice"
            where = TopicPartition(topic, partition)
            assert len(mine) == consumer.end_offsets([where])[where]
