"""Rows handed to a producer. Errors come early and name the row in the DataFrame's partition."""

import pyarrow as pa
import pytest

from spark_kafka_source.errors import BrokerError, KafkaTimeoutError, error_named
from spark_kafka_source.producer import RefusedRowsError
from spark_kafka_source.records import RowTooLargeError, UnencodableRowError
from spark_kafka_source.records.fingerprint import fingerprint_of
from spark_kafka_source.spark.conditions import NullTopicError
from spark_kafka_source.spark.sink.guarantee import Attempt
from spark_kafka_source.spark.sink.sending import Sending
from tests.spark.sink.fake_producer import FakeProducer
from tests.spark.sink.settings import parsed, values

GONE = KafkaTimeoutError("t-0 had no leader for 2 minutes")


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


def sending(producer: FakeProducer, topic: str | None = "t") -> Sending:
    options = parsed(**{} if topic is None else {"topic": topic})
    return Sending(producer, options, Attempt(3, 0, "q"))  # type: ignore[arg-type]  # a fake


def test_rows_are_sent_and_counted(producer: FakeProducer) -> None:
    to_send = sending(producer)
    to_send.send(values("a", "b"))
    to_send.send(values("c"))
    to_send.finish()
    assert producer.rows == [{"value": "a"}, {"value": "b"}, {"value": "c"}]
    assert producer.topics == ["t", "t"]
    assert producer.calls == ["flush"]
    assert to_send.row_count == 3
    assert to_send.byte_count == 3
    assert to_send.fingerprint == 0  # Nothing compares these rows.


def test_rows_that_are_written_exactly_once_have_a_fingerprint(producer: FakeProducer) -> None:
    options = parsed(topic="t", deliveryGuarantee="exactly-once")
    to_send = Sending(producer, options, Attempt(0, 0, "q"))  # type: ignore[arg-type]  # a fake
    to_send.send(values("a"))
    to_send.send(values("b"))
    assert to_send.fingerprint == fingerprint_of(values("a", "b"))


def test_what_was_not_written_is_an_error_at_the_next_rows(producer: FakeProducer) -> None:
    to_send = sending(producer)
    to_send.send(values("a"))
    to_send.send(values("b"))
    producer.answer(1, GONE)
    with pytest.raises(KafkaTimeoutError, match="no leader"):
        to_send.send(values("c"))


def test_what_was_not_written_is_an_error_at_the_end(producer: FakeProducer) -> None:
    to_send = sending(producer)
    to_send.send(values("a"))
    producer.answer(0, GONE)
    with pytest.raises(KafkaTimeoutError, match="no leader"):
        to_send.finish()


def test_what_is_written_is_forgotten(producer: FakeProducer) -> None:
    to_send = sending(producer)
    for number in range(1_000):
        to_send.send(values("a"))
        producer.answer(number)
    assert len(to_send._on_their_way) < 3


def test_rows_may_be_written_before_the_next_are_there(producer: FakeProducer) -> None:
    producer.answers_at_once = True
    to_send = sending(producer)
    to_send.send(values("a"))
    to_send.send(values("b"))
    assert not to_send._on_their_way
    to_send.finish()


@pytest.mark.parametrize("kind", [UnencodableRowError, RowTooLargeError])
def test_a_row_that_cannot_be_written_is_named(
    producer: FakeProducer, kind: type[UnencodableRowError]
) -> None:
    to_send = sending(producer)
    to_send.send(values("a", "b"))
    producer.fails[1] = kind([1, 2], "the key of a header is null")
    with pytest.raises(kind) as refused:
        to_send.send(values("c", "d", "e"))
    assert refused.value.rows == (3, 4)
    assert str(refused.value) == (
        "Row 3 (and 1 more rows): the key of a header is null (counted within partition 3 of "
        "the DataFrame)"
    )


def test_a_row_that_a_broker_refuses_is_named(producer: FakeProducer) -> None:
    to_send = sending(producer)
    to_send.send(values("a", "b"))
    to_send.send(values("c"))
    producer.answer(1, BrokerError(error_named("MESSAGE_TOO_LARGE"), "Produce to t-0"))
    with pytest.raises(RefusedRowsError) as refused:
        to_send.finish()
    assert refused.value.rows == (2,)
    assert "(counted within partition 3 of the DataFrame)" in str(refused.value)


@pytest.mark.parametrize("name", ["two words", "", "a/b", ".", "..", "\u00e9", "a" * 250, "a\n"])
def test_a_text_that_is_no_topics_name_is_named_with_its_rows(
    producer: FakeProducer, name: str
) -> None:
    to_send = sending(producer, None)
    to_send.send(pa.RecordBatch.from_pydict({"value": ["v"] * 2, "topic": ["a", "b"]}))
    with pytest.raises(UnencodableRowError, match="cannot be a topic's name") as refused:
        to_send.send(pa.RecordBatch.from_pydict({"value": ["v"] * 3, "topic": ["a", name, name]}))
    assert refused.value.rows == (3, 4)
    assert "(counted within partition 3 of the DataFrame)" in str(refused.value)
    assert len(str(refused.value)) < 500
    assert len(producer.sent) == 1


def test_a_null_topic_is_named_before_anything_of_its_batch_is_sent(producer: FakeProducer) -> None:
    to_send = sending(producer, None)

    def rows(*topics: str | None) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict(
            {"value": ["v"] * len(topics), "topic": pa.array(topics, pa.string())}
        )

    to_send.send(rows("a", "b"))
    with pytest.raises(NullTopicError) as refused:
        to_send.send(rows("a", None, None))
    assert str(refused.value).startswith(
        "[KAFKA_NULL_TOPIC_IN_DATA] Row 3 of partition 3 of the DataFrame has no topic"
    )
    assert len(producer.sent) == 1
    assert producer.topics == [None]
