"""The package's lines: none comes from beneath a handler, so that handlers may use clients."""

import logging
from contextlib import suppress
from pathlib import Path

import pytest

import spark_kafka_source
from spark_kafka_source import KafkaConsumer, KafkaProducer
from spark_kafka_source.errors import BootstrapError, KafkaTimeoutError, LocalError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import SendFuture
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition

ROOT = Path(spark_kafka_source.__file__).parent


def test_all_loggers_of_the_package_are_made_in_one_place() -> None:
    texts = {path.name: path.read_text() for path in ROOT.rglob("*.py")}
    assert [name for name, text in texts.items() if "getLogger(__name__" in text] == []


@pytest.mark.parametrize("topic", ["t", "nope"])
@pytest.mark.memory(topics={"t": 1})
def test_a_handler_does_not_make_the_producers_thread_wait(
    broker: MemoryBroker, topic: str
) -> None:
    """Each `send` fails at once, or goes on its way. Other records do not wait for it."""
    told: list[object] = []

    class Sends(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                told.append(producer.send(topic, record.message.encode()))
            except LocalError as error:
                told.append(error)

    def fail(*_: object) -> None:
        raise ValueError

    servers, handler = str(broker.address()), Sends()
    with KafkaProducer(bootstrap_servers=servers, max_block_ms=60_000, linger_ms=0) as producer:
        logging.getLogger().addHandler(handler)
        try:
            producer.send("t", b"", on_delivery=fail).result(10)
            producer.send("t", b"").result(10)
        finally:
            logging.getLogger().removeHandler(handler)
    (outcome,) = told
    if topic == "t":
        assert isinstance(outcome, SendFuture)
        assert outcome.result(0).topic == "t"
    else:
        assert "cannot wait for partitions of topic 'nope'" in str(outcome)


@pytest.mark.parametrize("topic", ["t", "nope"])
@pytest.mark.memory(topics={"t": 1})
def test_nothing_is_logged_within_a_handler(broker: MemoryBroker, topic: str) -> None:
    """Other threads, such as the producer's, log as ever."""
    within = [0]
    echoes = logger_of("spark_kafka_source.other")

    class UsesClients(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.threadName != "MainThread":
                return
            within.append(within[-1] + 1)
            if within[-1] == 1:
                with suppress(KafkaTimeoutError, BootstrapError):
                    producer.send(topic, b"a line")
                consumer.poll(500)
                echoes.error("an echo")
            within.append(within[-1] - 1)

    servers = str(broker.address())
    root, handler = logging.getLogger(), UsesClients()
    level = root.level
    with (
        KafkaProducer(bootstrap_servers=servers, max_block_ms=1_000) as producer,
        KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([TopicPartition(topic, 0)])
        root.setLevel(logging.DEBUG)
        root.addHandler(handler)
        try:
            logging.getLogger("app").warning("one line")
            echoes.warning("another line")
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
    assert within == [0, 1, 0, 1, 0]
