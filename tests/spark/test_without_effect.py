"""What does nothing is warned of: with the reason, or with what may have been meant."""

import pytest

from spark_kafka_source.errors import ConfigurationError
from tests.spark.settings import parsed


def warned(caplog: pytest.LogCaptureFixture, **options: str) -> list[str]:
    parsed(**options)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("session.timeout.ms", "the group has no members, as Spark plans the partitions"),
        ("max.poll.records", "use 'maxOffsetsPerTrigger' or 'maxRecordsPerPartition'"),
        ("allow.auto.create.topics", "topics are never created by reading"),
        ("acks", "it is a producer's, and this only reads"),
    ],
)
def test_a_setting_of_kafkas_that_makes_no_sense_here_says_why(
    option: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = warned(caplog, **{f"kafka.{option}": "secret"})
    assert message.startswith(f"Option 'kafka.{option}' has no effect here: ")
    assert message.endswith(reason)


@pytest.mark.parametrize(
    ("unknown", "nearest"),
    [
        ("kafka.fetch.max.wait", "kafka.fetch.max.wait.ms"),
        ("fetch.max.wait.ms", "kafka.fetch.max.wait.ms"),
        ("group.id", "kafka.group.id"),
        ("kafka.startingOffsets", "startingOffsets"),
        ("startingOffset", "startingOffsets"),
    ],
)
def test_a_slip_is_told_of_what_may_have_been_meant(
    unknown: str, nearest: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = warned(caplog, **{unknown: "1"})
    assert message == f"Option '{unknown.lower()}' has no effect here; did you mean '{nearest}'?"


@pytest.mark.parametrize("option", ["kafka.ssl.protocol", "kafka.enable.auto.commit"])
def test_what_is_refused_is_not_warned_of_as_well(
    option: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigurationError):
        parsed(**{option: "1"})
    assert not caplog.records
