"""A consumer whose bad records become letters: in the topic before the position moves past them."""

import logging
import re
import time
from typing import Any

import confluent_kafka as ck
import pytest

from spark_kafka_source import KafkaConsumer, KafkaProducer, TopicPartition
from spark_kafka_source.consumer import letter_writes
from spark_kafka_source.dead_letters import DeadLetterError, topic
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from tests.consumer.consumers import (
    IN_GROUP,
    PATIENCE_MS,
    T0,
    T1,
    consuming,
    eventually,
    of,
    poll_until,
    polled,
)
from tests.producer.writing import Written, answering, values, written

pytestmark = pytest.mark.memory(nodes=3)

JSON: dict[str, Any] = {"value_format": "json", "value_schema": "id BIGINT"}
LETTERS = {**JSON, "bad_records": "topic", "bad_records_topic": "dead"}
OFFSET = "__connect.errors.offset"


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    return broker.create_topic("t", 2)


@pytest.fixture
def dead(broker: MemoryBroker) -> PartitionLog:
    (dead,) = broker.create_topic("dead")
    return dead


def offsets(found: list[Written]) -> list[int]:
    return [int(dict(each.headers)[OFFSET] or b"") for each in found]


# -- letters ---------------------------------------------------------------------------------------


def test_good_records_come_and_bad_ones_are_letters(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    dead: PartitionLog,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = Record(key=b"k", value=b"?1", headers=[("a", b"1"), ("a", None)])
    logs[0].append(b'{"id": 0}', bad, Record(value=None), b"?3")
    logs[0].append(b"?4", b"?5")
    logs[0].append(b'{"id": 6}')
    with (
        consuming(broker, T0, **LETTERS) as consumer,
        caplog.at_level(logging.WARNING, "spark_kafka_source.consumer.letter_writes"),
    ):
        assert polled(consumer, 3) == of(T0, [0, 2, 6])
        assert consumer.position(T0) == 7
        metrics = consumer.metrics()
        assert metrics["bad-records-sent-total"] == 4
        assert metrics["bad-records-skipped-total"] == 0
        assert metrics["records-consumed-total"] == 3
    found = written(dead)
    assert offsets(found) == [1, 3, 4, 5]
    assert (found[0].key, found[0].value, list(found[0].headers[:2])) == (
        b"k",
        b"?1",
        [("a", b"1"), ("a", None)],
    )
    (message,) = caplog.messages
    assert message.startswith(
        "Sends bad records to topic 'dead', later ones without a log line: t-0 at offset 1: the "
        "value cannot be decoded"
    )


def test_without_bad_records_there_is_no_producer(
    broker: MemoryBroker, logs: list[PartitionLog], dead: PartitionLog
) -> None:
    logs[0].append(b'{"id": 0}')
    with consuming(broker, T0, **LETTERS) as consumer:
        assert polled(consumer, 1) == of(T0, [0])
    assert not broker.requests(InitProducerIdRequest)
    assert dead.end_offset == 0


def test_a_position_stays_until_its_letters_are_written_and_polls_do_not_wait(
    broker: MemoryBroker, logs: list[PartitionLog], dead: PartitionLog
) -> None:
    """Other partitions go on meanwhile. So no commit can pass a letter."""
    logs[0].append(b'{"id": 0}', b"?")
    with consuming(broker, T0, T1, **LETTERS, **IN_GROUP) as consumer:
        held = broker.hold(ProduceRequest)
        poll_until(consumer, lambda: bool(broker.requests(ProduceRequest)))
        logs[1].append(b'{"id": 1}')
        assert polled(consumer, 1) == of(T1, [0])
        began = time.monotonic()
        assert not len(consumer.poll(0))
        assert time.monotonic() - began < PATIENCE_MS / 1000
        assert consumer.position(T0) == 0
        consumer.commit()
        assert {
            (partition.partition_index, partition.committed_offset)
            for request in broker.requests(OffsetCommitRequest)
            for each in request.topics
            for partition in each.partitions
        } <= {(0, 0), (1, 1)}
        held.release()
        assert polled(consumer, 1) == of(T0, [0])
        assert consumer.position(T0) == 2
        assert values(dead) == [b"?"]


def test_records_one_by_one(
    broker: MemoryBroker, logs: list[PartitionLog], dead: PartitionLog
) -> None:
    logs[0].append(b'{"id": 0}', b"?", b'{"id": 2}')
    with consuming(broker, T0, **LETTERS, max_poll_records=1) as consumer:
        records = iter(consumer)
        assert [next(records).value["id"] for _ in range(2)] == [0, 2]
    assert values(dead) == [b"?"]


@pytest.mark.parametrize("error", ["TOPIC_AUTHORIZATION_FAILED", "MESSAGE_TOO_LARGE"])
def test_letters_that_are_refused_are_an_error_and_the_position_stays(
    broker: MemoryBroker, logs: list[PartitionLog], dead: PartitionLog, error: str
) -> None:
    """The next poll sends them again. An error after the good records of another partition."""
    logs[0].append(b'{"id": 0}', b"?")
    with consuming(broker, T0, **LETTERS) as consumer:
        broker.control(ProduceRequest, answering(error), times=2)
        for _ in range(2):
            with pytest.raises(DeadLetterError, match=r"t-0, offset 1.*'bad_records_topic'"):
                poll_until(consumer, lambda: False)
            assert consumer.position(T0) == 0
        assert polled(consumer, 1) == of(T0, [0])
    assert values(dead) == [b"?"]


def test_a_seek_leaves_letters_behind(
    broker: MemoryBroker, logs: list[PartitionLog], dead: PartitionLog
) -> None:
    """What is read again may be written again. No record comes late, or twice."""
    logs[0].append(b'{"id": 0}', b"?1", b'{"id": 2}')
    logs[0].append(b'{"id": 3}', b"?4")
    with consuming(broker, T0, **LETTERS) as consumer:
        held = broker.hold(ProduceRequest)
        poll_until(consumer, lambda: bool(broker.requests(ProduceRequest)))
        consumer.seek(T0, 3)
        held.release()
        assert polled(consumer, 1) == of(T0, [3])
        consumer.seek(T0, 0)
        assert polled(consumer, 3) == of(T0, [0, 2, 3])
    assert {*values(dead)} == {b"?1", b"?4"}


def test_a_close_gives_up_letters_whose_records_nobody_has(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    dead: PartitionLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next consumer sends them."""
    monkeypatch.setattr(letter_writes, "_CLOSE_SECONDS", 0.0)
    logs[0].append(b"?", b'{"id": 1}')
    with consuming(broker, T0, **LETTERS) as consumer:
        held = broker.hold(ProduceRequest)
        poll_until(consumer, lambda: bool(broker.requests(ProduceRequest)))
    held.release()
    broker.forget()
    with consuming(broker, T0, **LETTERS) as consumer:
        assert polled(consumer, 1) == of(T0, [1])
    eventually(lambda: dead.end_offset > 0)
    assert {*values(dead)} == {b"?"}


# -- the topic -------------------------------------------------------------------------------------


def test_the_topic_is_checked_before_the_first_record_comes(
    broker: MemoryBroker, logs: list[PartitionLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic, "PATIENCE_MS", 20)
    logs[0].append(b'{"id": 0}')
    with consuming(broker, T0, **LETTERS) as consumer:
        for _ in range(2):
            text = "Option 'bad_records_topic': topic 'dead' does not exist"
            with pytest.raises(ConfigurationError, match=text):
                poll_until(consumer, lambda: False)
            assert consumer.position(T0) == 0
        broker.create_topic("dead")
        broker.forget()
        assert polled(consumer, 1) == of(T0, [0])
        logs[0].append(b'{"id": 1}')
        assert polled(consumer, 1) == of(T0, [1])
        asked = [
            each
            for each in broker.requests(MetadataRequest)
            if each.include_topic_authorized_operations
        ]
        assert len(asked) == 1


@pytest.mark.usefixtures("dead")
def test_a_topic_that_is_read_is_refused(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    assert logs
    text = "Option 'bad_records_topic': 'dead' is also read from"
    with consuming(broker, **LETTERS) as consumer:
        with pytest.raises(ConfigurationError, match=text):
            consumer.subscribe(["t", "dead"])
        with pytest.raises(ConfigurationError, match=text):
            consumer.subscribe("dead")
        for pattern in ("d.*", re.compile(".*")):
            with pytest.raises(ConfigurationError, match=text):
                consumer.subscribe(pattern=pattern)
        with pytest.raises(ConfigurationError, match=text):
            consumer.assign([T0, TopicPartition("dead", 0)])
        assert consumer.assignment() == consumer.subscription() == set()
        consumer.subscribe(pattern="t.*|d")
        consumer.unsubscribe()
        consumer.assign([T0])


def test_a_topic_that_a_broker_matches_is_refused_before_its_first_record(
    broker: MemoryBroker, dead: PartitionLog
) -> None:
    """A pattern of the broker's says only later which topics it matches."""
    dead.append(b'{"id": 0}')
    with consuming(broker, T0, **LETTERS) as consumer:
        consumer._positions.keep([TopicPartition("dead", 0)])
        with pytest.raises(ConfigurationError, match="'dead' is also read from"):
            poll_until(consumer, lambda: False)
        assert consumer.position(TopicPartition("dead", 0)) == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({**JSON, "bad_records": "topic"}, "Option 'bad_records_topic': is missing"),
        (
            {**JSON, "badRecords": "topic"},
            "Option 'bad_records_topic': is missing, where 'badRecords' is 'topic'",
        ),
        (
            {**JSON, "bad_records_topic": "dead"},
            "Option 'bad_records_topic': has no effect where 'bad_records' is 'fail'",
        ),
        (
            {"bad_records": "topic", "bad_records_topic": "dead"},
            "Option 'bad_records': has no effect, since keys and values are bytes",
        ),
        ({**JSON, "bad_record_topic": "dead"}, "Did you mean 'bad_records_topic'"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", **options)
    assert text in str(refused.value)


# -- a real broker ---------------------------------------------------------------------------------


@pytest.mark.kafka
def test_on_a_real_broker_nothing_is_lost_between_two_consumers(
    kafka: LocalKafka, topic: str
) -> None:
    """One of a group stops in the middle without a commit, and the next one goes on."""
    letters = f"{topic}-letters"
    kafka.create_topic(topic, 3)
    kafka.create_topic(letters)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(3_000):
            value = b"?%d" % number if number % 7 == 0 else b'{"id": %d}' % number
            producer.send(topic, value, key=b"%d" % number, headers=[("n", b"%d" % number)])
    settings = {
        **LETTERS,
        "bootstrap_servers": kafka.bootstrap_servers,
        "bad_records_topic": letters,
        "group_id": topic,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_poll_records": 100,
    }
    seen: set[int] = set()
    for is_last in (False, True):
        with KafkaConsumer(**settings) as consumer:
            consumer.subscribe([topic])
            good = {number for number in range(3_000) if number % 7}
            enough = len(good) if is_last else 1_000

            def is_done(enough: int = enough) -> bool:
                return len(seen) >= enough

            poll_until(consumer, is_done, lambda found: seen.update(r.value["id"] for r in found))
            if not is_last:
                consumer.commit()
                # These records are not in the commit, so the next one reads them again.
                more = iter(consumer)
                assert next(more).value
        assert seen <= good
    assert seen == good
    read = _read_all(kafka, letters)
    assert {each.value() for each in read} == {b"?%d" % n for n in range(0, 3_000, 7)}
    for each in read:
        headers: Any = each.headers()
        assert headers[0] == ("n", (each.value() or b"")[1:])
        assert each.key() == (each.value() or b"")[1:]


def _read_all(kafka: LocalKafka, topic: str) -> list[ck.Message]:
    consumer = ck.Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "judge", "log_level": 0}
    )
    where = ck.TopicPartition(topic, 0, ck.OFFSET_BEGINNING)
    _, end = consumer.get_watermark_offsets(where, timeout=30)
    consumer.assign([where])
    found: list[ck.Message] = []
    while len(found) < end:
        batch = consumer.consume(end - len(found), timeout=30)  # It waits until so many are there.
        assert batch
        found += batch
    consumer.close()
    return found
