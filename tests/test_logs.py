"""The package's lines: none comes from beneath a handler, so that handlers may use clients."""

import gc
import logging
import logging.config
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import spark_kafka_source
from spark_kafka_source import KafkaConsumer, KafkaProducer
from spark_kafka_source.errors import BootstrapError, KafkaError, KafkaTimeoutError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import SendFuture
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.spelling import daemon
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.forking import forking, in_child

ROOT = Path(spark_kafka_source.__file__).parent


def test_all_loggers_of_the_package_are_made_in_one_place() -> None:
    texts = {path.name: path.read_text() for path in ROOT.rglob("*.py")}
    assert [name for name, text in texts.items() if "getLogger(__name__" in text] == []


@pytest.mark.parametrize("topic", ["t", "nope"])
@pytest.mark.memory(topics={"t": 1})
def test_a_handler_does_not_make_the_producers_thread_wait(
    broker: MemoryBroker, topic: str
) -> None:
    """Other records do not wait for a handler that waits for its topic."""
    sent: list[SendFuture] = []

    class Sends(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with suppress(KafkaError):
                sent.append(producer.send(topic, record.getMessage().encode()))

    def fail(*_: object) -> None:
        raise ValueError

    servers, handler = str(broker.address()), Sends()
    with KafkaProducer(bootstrap_servers=servers, max_block_ms=60_000, linger_ms=0) as producer:
        logging.getLogger().addHandler(handler)
        try:
            producer.send("t", b"", on_delivery=fail).result(10)
            producer.send("t", b"").result(10)
            if topic == "t":
                eventually(lambda: len(sent) == 1)
        finally:
            logging.getLogger().removeHandler(handler)
    assert [future.result(0).topic for future in sent] == (["t"] if topic == "t" else [])


@pytest.mark.parametrize("topic", ["t", "nope"])
@pytest.mark.memory(topics={"t": 1})
def test_nothing_is_logged_within_a_handler(broker: MemoryBroker, topic: str) -> None:
    """Lines of other threads, such as the producer's, are written as ever."""
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


@forking
@pytest.mark.parametrize(
    ("level", "end"),
    [("INFO", lambda: logging.config.dictConfig({"version": 1})), ("DEBUG", logging.shutdown)],
)
@pytest.mark.memory(topics={"t": 1})
def test_a_handler_may_close_its_producer_while_logging_holds_its_locks(
    broker: MemoryBroker, level: str, end: Callable[[], None]
) -> None:
    """The producer's thread has lines of its own then: a lost connection is one."""
    servers = str(broker.address())
    broker.control(ProduceRequest, Action.CLOSE)

    def in_a_program() -> Exception | None:
        class Sends(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if record.name == "app":
                    sent.append(producer.send("t", record.getMessage().encode()))

            def close(self) -> None:
                producer.close(5)
                super().close()

        gc.disable()  # It may end other tests' handlers. Then `logging` locks in any thread.
        sent: list[SendFuture] = []
        producer = KafkaProducer(bootstrap_servers=servers, linger_ms=60_000)
        logging.basicConfig(level=level, handlers=[Sends()], force=True)
        logging.getLogger("app").info("a line")
        end()
        return sent[0].exception(0)

    assert in_child(in_a_program) is None


def test_lines_of_a_background_thread_wait_for_a_handler_and_have_a_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logger_of("spark_kafka_source.other")

    def say_much() -> None:
        for number in range(2_000):
            logger.warning("%d", number)

    thread = daemon(say_much, "talker")
    caplog.handler.acquire()
    try:
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    finally:
        caplog.handler.release()
    left_out = "Log lines are left out from here on: a handler is slow"
    eventually(lambda: left_out in caplog.messages)
    lines = [each for each in caplog.messages if each != left_out]
    assert lines == [str(number) for number in range(len(lines))]
    assert len(lines) < 1_002
    assert {each.threadName for each in caplog.records} == {"talker"}
