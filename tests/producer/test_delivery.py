"""Futures: outcomes of parts of a batch, waits, callbacks, and shared errors of many records."""

import logging
import pickle
import threading
import traceback

import numpy as np
import pytest

from spark_kafka_source.errors import (
    BrokerError,
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    error_named,
)
from spark_kafka_source.producer import (
    BatchMetadata,
    ColumnsFuture,
    RecordMetadata,
    RefusedRowsError,
    SendFuture,
)
from spark_kafka_source.producer.delivery import NO_OFFSET, Delivery, Outcome, Run
from spark_kafka_source.producer.parcel import Parcel
from tests.producer.writing import IN_TIME, T0, T1

LOST = ClosedError("it is lost")


def delivery_of(count: int) -> Delivery:
    delivery = Delivery(T0)
    delivery.closed(count)
    return delivery


def there(first: int, count: int, offset: int, append_time_ms: int = -1) -> Outcome:
    return Outcome(first, count, offset, append_time_ms, None)


def lost(first: int, count: int) -> Outcome:
    return Outcome(first, count, NO_OFFSET, -1, LOST)


def future_of(delivery: Delivery, number: int) -> SendFuture:
    """Return the future of a record of a parcel that went to one batch."""
    parcel = Parcel("t", 1)
    parcel.facts = [1_000] * (number + 1), [2] * (number + 1), [-1] * (number + 1)
    parcel.place([Run(delivery, 0, number + 1, range(number + 1))])
    return SendFuture(parcel, number)


def test_a_record_is_where_its_part_of_the_batch_is() -> None:
    delivery = delivery_of(5)
    futures = [future_of(delivery, each) for each in range(5)]
    delivery.add(there(3, 2, 70, 2_000))
    assert not any(each.done() for each in futures)
    delivery.add(lost(1, 1))
    delivery.add(there(2, 1, NO_OFFSET))
    delivery.add(there(0, 1, 60))
    assert all(each.done() for each in futures)
    assert futures[0].result(0) == RecordMetadata("t", 0, 60, 1_000, 2, -1)
    assert futures[1].exception(0) is LOST
    assert futures[2].result(0).offset == -1
    assert futures[4].result(0) == RecordMetadata("t", 0, 71, 2_000, 2, -1)
    assert delivery.error is LOST


def test_a_batch_that_still_takes_records_is_not_done() -> None:
    delivery = Delivery(T0)
    assert not future_of(delivery, 0).done()
    assert not delivery.wait(0)


def test_without_an_answer_in_time_the_partition_is_named_and_one_can_wait_again() -> None:
    delivery = delivery_of(1)
    future = future_of(delivery, 0)
    for _ in range(2):
        with pytest.raises(KafkaTimeoutError, match=r"about records of t-0 within 0\.001 s"):
            future.result(0.001)
    delivery.add(there(0, 1, 7))
    assert future.result(0).offset == 7


def test_all_threads_that_wait_are_woken() -> None:
    delivery = delivery_of(2)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(future_of(delivery, 1).result(IN_TIME).offset))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    delivery.add(there(0, 2, 7))
    for each in threads:
        each.join()
    assert found == [8] * 4


def test_an_error_of_many_records_has_no_traceback_of_the_others() -> None:
    delivery = delivery_of(1)
    delivery.add(lost(0, 1))
    for _ in range(5):
        with pytest.raises(ClosedError) as caught:
            future_of(delivery, 0).result(0)
    assert len(traceback.extract_tb(caught.value.__traceback__)) <= 3


def test_callbacks_come_once_in_order_and_at_once_where_it_is_known() -> None:
    delivery = delivery_of(2)
    said: list[object] = []
    futures = [future_of(delivery, each) for each in range(2)]
    for each in futures:
        each.add_done_callback(said.append)
    futures[0].tell(lambda metadata, error: said.append((metadata, error)))
    futures[1].tell(lambda metadata, error: said.append((metadata, error)))
    delivery.add(there(0, 1, 7))
    assert not said
    delivery.add(lost(1, 1))
    assert said == [*futures, (RecordMetadata("t", 0, 7, 1_000, 2, -1), None), (None, LOST)]
    futures[0].add_done_callback(said.append)
    assert len(said) == 5


@pytest.mark.parametrize("raised", [ValueError("oh"), SystemExit(3), KeyboardInterrupt()])
def test_a_callback_that_raises_is_logged_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture, raised: BaseException
) -> None:
    delivery = delivery_of(1)

    def fail(_: object) -> None:
        raise raised

    said: list[object] = []
    future = future_of(delivery, 0)
    future.add_done_callback(fail)
    future.add_done_callback(said.append)
    with caplog.at_level(logging.ERROR):
        delivery.add(there(0, 1, 7))
        future.add_done_callback(fail)
    assert said == [future]
    assert [each.getMessage() for each in caplog.records] == [
        "A callback for records of t-0 raised"
    ] * 2


def test_what_is_given_up_is_what_nothing_is_known_of() -> None:
    delivery = delivery_of(6)
    delivery.add(there(4, 1, 9))
    delivery.add(there(1, 2, 5))
    delivery.give_up(LOST)
    assert delivery.is_done
    errors = [delivery.outcome(each).error for each in range(6)]
    assert errors == [LOST, None, None, LOST, None, LOST]
    delivery.give_up(LOST)
    assert len(delivery.outcomes) == 5


def test_a_delivery_that_is_given_up_before_all_others_is_given_up_whole() -> None:
    delivery = delivery_of(3)
    delivery.give_up(LOST)
    assert [delivery.outcome(each).error for each in range(3)] == [LOST] * 3


# -- columns ---------------------------------------------------------------------------------------


def test_columns_are_where_the_batches_are_that_they_went_to() -> None:
    one, other = delivery_of(10), Delivery(T1)
    other.closed(3)
    future = ColumnsFuture([Run(one, 2, 5), Run(other, 0, 3), Run(one, 8, 2)])
    one.add(there(5, 5, 50))
    one.add(there(0, 5, 20))
    assert not future.done()
    other.add(there(0, 3, NO_OFFSET))
    assert future.done()
    assert future.result(0) == [
        BatchMetadata("t", 0, 22, 3),
        BatchMetadata("t", 0, 50, 2),
        BatchMetadata("t", 1, -1, 3),
        BatchMetadata("t", 0, 53, 2),
    ]


def test_an_error_of_records_of_others_is_none_of_these_columns() -> None:
    delivery = delivery_of(6)
    first, second = (ColumnsFuture([Run(delivery, start, 3)]) for start in (0, 3))
    delivery.add(there(0, 3, 10))
    delivery.add(lost(3, 1))
    delivery.add(there(4, 2, 13))
    assert first.result(0) == [BatchMetadata("t", 0, 10, 3)]
    assert second.exception(0) is LOST
    with pytest.raises(ClosedError, match="it is lost"):
        second.result(0)


def test_refused_rows_are_named_by_their_places_in_what_was_sent() -> None:
    too_large = BrokerError(error_named("MESSAGE_TOO_LARGE"), "Produce to t-0", "a record is")
    one, other = delivery_of(3), delivery_of(3)
    future = ColumnsFuture([Run(one, 0, 3, np.array([9, 4, 7])), Run(other, 1, 2, range(20, 22))])
    for delivery in (one, other):
        delivery.add(there(0, 2, 10))
        delivery.add(Outcome(2, 1, NO_OFFSET, -1, too_large))
    error = future.failure()
    assert isinstance(error, RefusedRowsError)
    assert error.rows == (7, 21)
    assert str(error) == (
        "Row 7 (and 1 more rows): Produce to t-0: MESSAGE_TOO_LARGE (10): a record is"
    )
    assert pickle.loads(pickle.dumps(error.counted_from(100))).rows == (107, 121)


def test_a_failure_is_known_before_all_is() -> None:
    one, other = delivery_of(1), delivery_of(1)
    future = ColumnsFuture([Run(one, 0, 1), Run(other, 0, 1)])
    assert future.failure() is None
    other.add(lost(0, 1))
    assert future.failure() is LOST
    with pytest.raises(KafkaTimeoutError):
        future.result(0.001)


def test_columns_tell_once_when_all_of_their_batches_are_done() -> None:
    one, other = delivery_of(2), delivery_of(1)
    future = ColumnsFuture([Run(one, 0, 1), Run(other, 0, 1), Run(one, 1, 1)])
    said: list[object] = []
    future.add_done_callback(said.append)
    one.add(there(0, 2, 0))
    assert not said
    other.add(there(0, 1, 0))
    assert said == [future]
    future.add_done_callback(said.append)
    assert said == [future] * 2


def test_without_rows_all_is_done() -> None:
    future = ColumnsFuture([])
    said: list[object] = []
    future.add_done_callback(said.append)
    assert said == [future]
    assert future.done()
    assert future.result() == []


def test_a_callback_of_columns_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """This also holds for columns without rows."""

    def fail(_: object) -> None:
        raise ValueError

    delivery = delivery_of(1)
    ColumnsFuture([Run(delivery, 0, 1)]).add_done_callback(fail)
    delivery.add(there(0, 1, 0))
    assert "A callback for records of t-0 raised" in caplog.text
    error: KafkaError | None = ColumnsFuture([Run(delivery, 0, 1)]).exception(0)
    assert error is None
