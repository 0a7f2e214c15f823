"""A coordinator's errors and their remedies, as in Kafka's `TransactionManager` of 4.3."""

import pytest

from spark_kafka_source.errors import BrokerError, Remedy, error_named
from spark_kafka_source.producer.errors import (
    ProducerFencedError,
    TransactionAbortableError,
    transaction_error,
)


def meant(name: str, detail: str | None = None) -> BrokerError:
    return transaction_error(BrokerError(error_named(name), "EndTxn of 'x'", detail))


@pytest.mark.parametrize("name", ["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
def test_an_old_epoch_is_the_end_of_the_producer(name: str) -> None:
    error = meant(name)
    assert type(error) is ProducerFencedError
    assert not error.retriable
    assert str(error).startswith(f"EndTxn of 'x': {name} (")
    assert "another producer has begun with this 'kafka.transactional.id'" in str(error)
    assert "longer than 'kafka.transaction.timeout.ms'" in str(error)


@pytest.mark.parametrize(
    "name",
    [
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_PRODUCER_ID",
        "TOPIC_AUTHORIZATION_FAILED",
        "OPERATION_NOT_ATTEMPTED",
        "GROUP_AUTHORIZATION_FAILED",
        "FENCED_INSTANCE_ID",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
    ],
)
def test_a_transaction_that_failed_can_be_aborted(name: str) -> None:
    error = meant(name)
    assert type(error) is TransactionAbortableError
    assert error.remedy is Remedy.NONE


@pytest.mark.parametrize(
    "name",
    ["INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"],
)
def test_other_errors_end_the_producer(name: str) -> None:
    error = meant(name)
    assert type(error) is BrokerError
    assert not error.retriable


@pytest.mark.parametrize(
    "name", ["CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"]
)
def test_what_may_heal_keeps_its_remedy(name: str) -> None:
    assert meant(name).remedy is error_named(name).remedy


def test_a_denials_own_words_stay() -> None:
    assert meant("PRODUCER_FENCED", "who it was").detail == "who it was"
