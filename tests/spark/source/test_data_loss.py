"""Data loss: an error with `failOnDataLoss`, or else one warning with the same text."""

import logging

import pytest

from spark_kafka_source.spark.conditions import DataLoss, DataLossError, partitions_deleted
from tests.spark.settings import A0, shipped

LOSS = partitions_deleted([A0])


def test_a_loss_fails_unless_told_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError) as raised:
        DataLoss().report(LOSS)
    assert raised.value is LOSS
    assert not caplog.records


def test_a_loss_is_logged_whole_where_it_does_not_fail(caplog: pytest.LogCaptureFixture) -> None:
    shipped(DataLoss(fails=False)).report(LOSS)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(LOSS) in record.getMessage()
    assert "failOnDataLoss is false" in record.getMessage()
