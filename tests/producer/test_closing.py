"""Closing a producer waits for its records in flight, and not for what holds up its thread."""

import threading
import time
from collections.abc import Callable

import pyarrow as pa
import pytest

from spark_kafka_source import KafkaProducer
from spark_kafka_source.errors import ClosedError, KafkaTimeoutError, LocalError
from spark_kafka_source.producer import kafka_producer, sender
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import IN_TIME, producing

# Half of the wait of an idle producer's thread.
TIMEOUT_SECONDS = 30


def test_the_last_answer_ends_it() -> None:
    with MemoryBroker() as broker:
        (log,) = broker.create_topic("t")
        producer = KafkaProducer(bootstrap_servers=str(broker.address()))
        answer = broker.hold(ProduceRequest)
        future = producer.send("t", b"last")
        broker.wait_for(ProduceRequest)
        closing = threading.Thread(target=producer.close, daemon=True)
        closing.start()
        while not is_closed(producer):
            pass
        answer.release()
        closing.join(TIMEOUT_SECONDS)
        assert not closing.is_alive()
        assert future.result(0).offset == 0
        assert log.end_offset == 1


def is_closed(producer: KafkaProducer) -> bool:
    try:
        producer.partitions_for("t")
    except ClosedError:
        return True
    return False


def leave(producer: KafkaProducer) -> None:
    with pytest.raises(ValueError, match="oh"), producer:
        raise ValueError("oh")


def close_soon(producer: KafkaProducer) -> None:
    producer.close(0.2)


def end_program(producer: KafkaProducer) -> None:
    producer._ending()


@pytest.mark.parametrize("end", [close_soon, leave, end_program])
@pytest.mark.memory(topics={"t": 40})
def test_many_slow_callbacks_do_not_move_the_deadline(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, end: Callable[[KafkaProducer], None]
) -> None:
    monkeypatch.setattr(kafka_producer, "_LAST_WORDS_MS", 200)
    is_told, is_over = threading.Event(), threading.Event()

    def told(*_: object) -> None:
        is_told.set()
        is_over.wait(0.1)

    with producing(broker) as producer:
        sent = [producer.send("t", b"", partition=each, on_delivery=told) for each in range(40)]
        is_told.wait(IN_TIME)
        end(producer)
        assert not all(each.done() for each in sent), "all callbacks take 4 seconds"
        is_over.set()
        for each in sent:
            each.exception(IN_TIME)  # All outcomes are told later.


@pytest.mark.parametrize("end", [close_soon, KafkaProducer.close, leave, end_program])
@pytest.mark.memory(topics={"t": 1})
def test_a_callback_that_waits_for_the_closing_thread_holds_it_up_for_a_bounded_time(
    broker: MemoryBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    end: Callable[[KafkaProducer], None],
) -> None:
    monkeypatch.setattr(kafka_producer, "_LAST_WORDS_MS", 200)
    monkeypatch.setattr(sender, "_SLACK_MS", 0)
    lock = threading.Lock()

    def told(*_: object) -> None:
        is_told.set()
        with lock:
            pass

    is_told = threading.Event()
    short = {"delivery_timeout_ms": 300, "request_timeout_ms": 300}
    with producing(broker, **short) as producer:
        with lock:
            producer.send("t", b"0", on_delivery=told)
            is_told.wait(IN_TIME)
            last = producer.send("t", b"1")
            began = time.monotonic()
            end(producer)
            assert time.monotonic() - began < TIMEOUT_SECONDS
            assert not last.done()
        assert "busy, as with a callback. Batches left behind: 2" in caplog.text
        last.exception(IN_TIME)  # Some outcome comes once the callback ends.


@pytest.mark.memory(topics={"t": 1})
def test_a_callback_waits_for_no_other_record(broker: MemoryBroker) -> None:
    over = threading.Event()

    def told(*_: object) -> None:
        table = pa.table({"value": [b"columns"]})
        for sent in (before, producer.send("t", b"2"), producer.send_columns("t", table)):
            for wait in (sent.result, sent.exception):
                for seconds in (None, 1.0):
                    with pytest.raises(LocalError, match="a callback of the producer cannot wait"):
                        wait(seconds)
            with pytest.raises(KafkaTimeoutError):
                sent.result(0)
        assert first.result().offset == 0, "what is known takes no wait"
        over.set()

    with producing(broker) as producer:
        answer = broker.hold(ProduceRequest)
        first = producer.send("t", b"0")
        broker.wait_for(ProduceRequest)
        before = producer.send("t", b"1")
        first.tell(told)
        answer.release()
        assert over.wait(IN_TIME)
        assert before.result(IN_TIME).offset == 1
