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
        ("kafka.group", "kafka.group.id"),
        ("kafka.startingOffsets", "startingOffsets"),
        ("startingOffset", "startingOffsets"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("kafka.isolation.levle", "kafka.isolation.level"),
    ],
)
def test_a_slip_is_told_of_what_may_have_been_meant(
    unknown: str, nearest: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = warned(caplog, **{unknown: "secret"})
    assert message == f"Option '{unknown.lower()}' has no effect here; did you mean '{nearest}'?"


def test_an_option_like_no_other_is_named_without_a_guess(caplog: pytest.LogCaptureFixture) -> None:
    assert warned(caplog, **{"zzz": "1", "kafka.ack": "1"}) == [
        "Option 'kafka.ack' has no effect here",
        "Option 'zzz' has no effect here",
    ]


def test_options_that_are_read_do_not_warn(caplog: pytest.LogCaptureFixture) -> None:
    given = {"kafka_fetch_min_bytes": "1", "kafka_group_id": "g", "path": "", "groupIdPrefix": "x"}
    assert not warned(caplog, **given)


@pytest.mark.parametrize("option", ["kafka.ssl.protocol", "kafka.enable.auto.commit"])
def test_what_is_refused_is_not_warned_of_as_well(
    option: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigurationError):
        parsed(**{option: "1"})
    assert not caplog.records
