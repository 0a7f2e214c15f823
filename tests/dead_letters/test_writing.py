"""Letters on their way: what fails is named by the offset of its record, and by the option."""

import pickle
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.dead_letters import DeadLetterError, DeadLetters, Destination
from spark_kafka_source.dead_letters.writing import BUFFER_BYTES
from spark_kafka_source.errors import Remedy
from spark_kafka_source.net import ConnectionSettings
from spark_kafka_source.producer.config import Acks
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from spark_kafka_source.spelling import spelt
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import Letters
from tests.producer.writing import answering, values

pytestmark = pytest.mark.memory(client={"retry_backoff_ms": 1, "retry_backoff_max_ms": 5})

WHERE = TopicPartition("events", 3)


def letters(*given: bytes, first: int = 7) -> Letters:
    """Return letters of the records at `first`, `first + 10` and so on."""
    offsets = np.arange(first, first + 10 * len(given), 10)
    return Letters(WHERE, offsets, "bad", pa.RecordBatch.from_pydict({"value": list(given)}))


@pytest.fixture
def log(broker: MemoryBroker) -> PartitionLog:
    (log,) = broker.create_topic("dead")
    return log


@pytest.fixture
def writer(broker: MemoryBroker, log: PartitionLog) -> Iterator[DeadLetters]:
    assert log.end_offset == 0
    config = broker.config(retry_backoff_ms=1, retry_backoff_max_ms=5)
    writer = DeadLetters(Destination(config, "dead"))
    yield writer
    writer.close(0)


def test_letters_are_written_when_the_wait_is_over(writer: DeadLetters, log: PartitionLog) -> None:
    sent = [writer.send(letters(b"a", b"b")), writer.send(letters(b"c"))]
    for each in sent:
        each.wait()
        assert each.is_done
        each.raise_failure()
    assert values(log) == [b"a", b"b", b"c"]


def test_nothing_is_asked_before_the_first_letter(
    broker: MemoryBroker, writer: DeadLetters, log: PartitionLog
) -> None:
    assert broker.seen == []
    writer.send(letters(b"a")).wait()
    writer.send(letters(b"b")).wait()
    assert len(broker.requests(InitProducerIdRequest)) == 1
    assert {each.acks for each in broker.requests(ProduceRequest)} == {Acks.ALL}
    assert values(log) == [b"a", b"b"]


def test_a_letter_is_sent_again_after_an_error_that_heals(
    broker: MemoryBroker, writer: DeadLetters, log: PartitionLog
) -> None:
    broker.control(ProduceRequest, answering("NOT_ENOUGH_REPLICAS_AFTER_APPEND"))
    writer.send(letters(b"a")).wait()
    assert values(log) == [b"a"]


def test_a_denial_names_the_option_and_the_records(
    broker: MemoryBroker, writer: DeadLetters
) -> None:
    broker.control(ProduceRequest, answering("TOPIC_AUTHORIZATION_FAILED"), times=None)
    sent = writer.send(letters(b"a", b"b", b"c"))
    with pytest.raises(DeadLetterError) as failed:
        sent.wait()
    assert str(failed.value).startswith(
        "events-3, offsets 7 to 27: bad records were not written to topic 'dead', which "
        "'badRecords.topic' names: Produce to dead-0: TOPIC_AUTHORIZATION_FAILED (29): the user "
        "needs WRITE on topic 'dead'"
    )
    assert failed.value.remedy is Remedy.NONE
    again = pickle.loads(pickle.dumps(failed.value))
    assert str(again) == str(failed.value)
    with pytest.raises(DeadLetterError):
        sent.raise_failure()


def test_a_refused_letter_is_named_by_its_record(broker: MemoryBroker, writer: DeadLetters) -> None:
    broker.control(ProduceRequest, answering("MESSAGE_TOO_LARGE"), times=None)
    with pytest.raises(DeadLetterError, match=r"events-3, offset 42: .*'max.message.bytes'"):
        writer.send(letters(b"a", first=42)).wait()


def test_a_letter_that_cannot_be_sent_is_named_before_any_is_sent(
    writer: DeadLetters, log: PartitionLog
) -> None:
    with pytest.raises(DeadLetterError) as failed:
        writer.send(letters(b"a", bytes(BUFFER_BYTES), b"c"))
    assert "events-3, offset 17: " in str(failed.value)
    assert f"a letter takes more than {BUFFER_BYTES} bytes" in str(failed.value)
    assert "Row" not in str(failed.value)
    assert values(log) == []


def test_the_option_is_named_as_the_user_writes_it(
    broker: MemoryBroker, writer: DeadLetters
) -> None:
    broker.control(ProduceRequest, answering("INVALID_RECORD"), times=None)
    with (
        spelt({"badRecords.topic": "bad_records_topic"}),
        pytest.raises(DeadLetterError, match="which 'bad_records_topic' names"),
    ):
        writer.send(letters(b"a")).wait()


def test_a_writer_that_is_closed_takes_no_letter(writer: DeadLetters) -> None:
    writer.close(0)
    with pytest.raises(DeadLetterError, match="is closed"):
        writer.send(letters(b"a"))


def test_a_close_waits_for_the_letters(
    broker: MemoryBroker, writer: DeadLetters, log: PartitionLog
) -> None:
    sent = writer.send(letters(b"a"))
    writer.close(30)
    assert sent.is_done
    assert values(log) == [b"a"]
    assert broker.requests(MetadataRequest)


def test_the_time_for_a_request_fits_into_that_for_a_letter() -> None:
    """A source may have a longer request timeout than a producer's default allows."""
    settings = ConnectionSettings(request_timeout_ms=300_000)
    config = Destination(ClientConfig((), settings), "dead").producer
    assert config.delivery_timeout_ms == 300_000
    assert config.acks is Acks.ALL
    assert config.enable_idempotence
    assert Destination(ClientConfig(()), "dead").producer.delivery_timeout_ms == 120_000
