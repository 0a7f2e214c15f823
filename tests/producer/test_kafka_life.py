"""A long-lived `KafkaProducer`: topics that grow and go, brokers that restart, quotas."""

import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from threading import Event, Thread
from typing import Any, Self

import pytest

from spark_kafka_source import KafkaProducer, RecordMetadata, SendFuture
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.testing import LocalKafka
from tests.matrix.conftest import OLDEST_KAFKA
from tests.producer.reading import ByPartition, read_by_confluent
from tests.producer.rows import as_columns, rows
from tools.traffic import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.long]

WAIT_SECONDS = 60.0
PAUSE_SECONDS = 0.002


class Steady:
    """Write numbers at intervals during the context. Its end waits until all are written."""

    def __init__(self, kafka: LocalKafka, topic: str, **settings: Any) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers, linger_ms=0, **settings
        )
        self._topic = topic
        self._stopped = Event()
        self._thread = Thread(target=self._run)
        self.futures: list[SendFuture] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.close()

    def _run(self) -> None:
        for number in count():
            if self._stopped.wait(PAUSE_SECONDS):
                return
            self.futures.append(self._producer.send(self._topic, b"%d" % number))

    def await_one_more(self) -> RecordMetadata:
        """Wait until the next number is acknowledged."""
        written = len(self.futures)
        wait_until(lambda: len(self.futures) > written)
        return self.futures[written].result(WAIT_SECONDS)


def numbers(found: ByPartition) -> Counter[int]:
    return Counter(int(row.value or b"") for each in found.values() for row in each)


def assert_all_there_once(steady: Steady, found: ByPartition) -> None:
    errors = [error for each in steady.futures if (error := each.exception(0)) is not None]
    assert errors == []
    assert numbers(found) == Counter(range(len(steady.futures)))
    for each in found.values():
        in_order = [int(row.value or b"") for row in each]
        assert in_order == sorted(in_order)


def test_partitions_that_a_topic_gets_are_written_to(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic, 1)
    with Steady(kafka, topic, metadata_max_age_ms=300, batch_size=100) as steady:
        steady.await_one_more()
        kafka.create_partitions(topic, 3)
        seen = set[int]()

        def all_are_written_to() -> bool:
            seen.add(steady.await_one_more().partition)
            return len(seen) == 3

        wait_until(all_are_written_to)
    assert_all_there_once(steady, read_by_confluent(kafka.bootstrap_servers, topic, 3))


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_topic_that_is_deleted_and_made_anew_is_written_to(
    kafka: LocalKafka, topic: str, idempotent: bool
) -> None:
    """The old records are gone. All records acknowledged after that are there."""
    kafka.create_topic(topic)
    with Steady(kafka, topic, enable_idempotence=idempotent) as steady:
        for _ in range(3):
            steady.await_one_more()
            kafka.delete_topic(topic)
            kafka.create_topic(topic)
        first = len(steady.futures)
        steady.await_one_more()
    later = [each.exception(0) for each in steady.futures[first:]]
    assert set(later) == {None}
    found = numbers(read_by_confluent(kafka.bootstrap_servers, topic, 1))
    assert set(range(first, len(steady.futures))) <= set(found)
    if idempotent:
        assert set(found.values()) == {1}


def test_a_restart_of_all_brokers_costs_nothing(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic)
    with Steady(kafka, topic) as steady:
        steady.await_one_more()
        kafka.restart()
        steady.await_one_more()
        kafka.kill()
        kafka.start()
        steady.await_one_more()
    assert_all_there_once(steady, read_by_confluent(kafka.bootstrap_servers, topic, 1))


# -- a producer that the brokers forget ------------------------------------------------------------


@pytest.fixture(scope="module")
def forgetful() -> Iterator[LocalKafka]:
    """Run a broker that forgets producers and transactional ids within a second."""
    properties = {
        "producer.id.expiration.ms": "500",
        "producer.id.expiration.check.interval.ms": "100",
        "transactional.id.expiration.ms": "1000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
    }
    with LocalKafka(properties=properties) as kafka:
        yield kafka


def knows_producers(kafka: LocalKafka, topic: str) -> bool:
    """Return whether the leader knows a producer of the first partition."""
    arguments = ("describe-producers", "--topic", topic, "--partition", "0")
    return len(kafka.tool("transactions", *arguments).splitlines()) > 1


def knows_ids(kafka: LocalKafka, topic: str) -> bool:
    return topic in kafka.tool("transactions", "list")


def test_an_idle_producer_that_was_forgotten_goes_on(forgetful: LocalKafka, topic: str) -> None:
    forgetful.create_topic(topic)
    with KafkaProducer(bootstrap_servers=forgetful.bootstrap_servers, linger_ms=0) as producer:
        for number in range(3):
            futures = [producer.send(topic, b"%d" % (number * 50 + each)) for each in range(50)]
            for each in futures:
                each.result(WAIT_SECONDS)
            wait_until(lambda: not knows_producers(forgetful, topic))
    found = read_by_confluent(forgetful.bootstrap_servers, topic, 1)
    assert [int(row.value or b"") for row in found[0]] == list(range(150))


def test_a_transactional_id_that_was_forgotten_ends_the_producer_by_name(
    forgetful: LocalKafka, topic: str
) -> None:
    forgetful.create_topic(topic)
    with KafkaProducer(
        bootstrap_servers=forgetful.bootstrap_servers, transactional_id=topic
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"0")
        producer.commit_transaction()
        wait_until(lambda: not knows_ids(forgetful, topic))
        producer.begin_transaction()
        error = producer.send(topic, b"1").exception(WAIT_SECONDS)
        assert "INVALID_PRODUCER_ID_MAPPING" in str(error)
        assert "transactional.id.expiration.ms" in str(error)
        with pytest.raises(KafkaError, match="INVALID_PRODUCER_ID_MAPPING"):
            producer.commit_transaction()


# -- quotas ----------------------------------------------------------------------------------------

QUOTA_BYTES_A_SECOND = 200_000
QUOTA_BYTES = 1_200_000


@pytest.fixture(scope="module")
def strict() -> Iterator[LocalKafka]:
    """Run a broker with a quota window of two seconds."""
    with LocalKafka(properties={"quota.window.num": "2"}) as kafka:
        yield kafka


def test_a_producer_over_its_quota_keeps_to_it(strict: LocalKafka, topic: str) -> None:
    strict.create_topic(topic)
    given = ("--add-config", f"producer_byte_rate={QUOTA_BYTES_A_SECOND}")
    named = ("--entity-type", "clients", "--entity-name", "slow")
    strict.tool("configs", "--alter", *given, *named)
    with KafkaProducer(
        bootstrap_servers=strict.bootstrap_servers, client_id="slow", batch_size=20_000
    ) as producer:
        producer.send(topic, b"").result(WAIT_SECONDS)
        started_seconds = time.monotonic()
        futures = [producer.send(topic, bytes(1_000)) for _ in range(QUOTA_BYTES // 1_000)]
        for each in futures:
            each.result(WAIT_SECONDS)
        seconds = time.monotonic() - started_seconds
    # A whole quota window may go at once. The last batch is written before its throttle.
    assert seconds > QUOTA_BYTES / QUOTA_BYTES_A_SECOND - 2 - 1
    assert len(read_by_confluent(strict.bootstrap_servers, topic, 1)[0]) == 1 + len(futures)


# -- an older Kafka --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def oldest() -> Iterator[LocalKafka]:
    with LocalKafka(version=OLDEST_KAFKA) as kafka:
        yield kafka


@pytest.mark.parametrize("transactional", [True, False])
def test_the_oldest_kafka_that_is_tried(
    oldest: LocalKafka, topic: str, transactional: bool
) -> None:
    oldest.create_topic(topic, 3)
    given = rows()
    more: dict[str, Any] = {"transactional_id": topic} if transactional else {}
    with KafkaProducer(
        bootstrap_servers=oldest.bootstrap_servers, compression_type="zstd", **more
    ) as producer:
        if transactional:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send_columns(topic, as_columns(given))
            producer.abort_transaction()
            producer.begin_transaction()
        producer.send_columns(topic, as_columns(given))
        for each in given:
            producer.send(topic, **each)
        if transactional:
            producer.commit_transaction()
    found = read_by_confluent(oldest.bootstrap_servers, topic, 3, "read_committed")
    counts = Counter((row.key, row.value, row.headers) for each in found.values() for row in each)
    assert counts == Counter(
        (each["key"], each["value"], tuple(each["headers"])) for each in given for _ in range(2)
    )
