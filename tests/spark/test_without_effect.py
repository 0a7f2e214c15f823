"""Options without effect cause a warning with the reason; misspelt options are errors."""

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.options import parse_sink_options
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
        ("acks", "it is for writing"),
    ],
)
def test_a_setting_of_kafkas_that_makes_no_sense_here_says_why(
    option: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = warned(caplog, **{f"kafka.{option}": "secret"})
    assert message.startswith(f"Option 'kafka.{option}' has no effect here: ")
    assert message.endswith(reason)


SLIPS = [
    ("kafka.fetch.max.wait", "kafka.fetch.max.wait.ms"),
    ("fetch.max.wait.ms", "kafka.fetch.max.wait.ms"),
    ("group.id", "kafka.group.id"),
    ("kafka.group", "kafka.group.id"),
    ("bootstrap.servers", "kafka.bootstrap.servers"),
    ("kafka.metadata.broker.list", "kafka.bootstrap.servers"),
    ("kafka.startingOffsets", "startingOffsets"),
    ("startingOffset", "startingOffsets"),
    ("starting_timestamp", "startingTimestamp"),
    ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
    ("kafka.isolation.levle", "kafka.isolation.level"),
    ("unknownOption", "unknownOptions"),
    ("topics", "subscribe"),
    ("avroSchema", "value.schema"),
]


@pytest.mark.parametrize(("unknown", "meant"), SLIPS)
def test_a_slip_is_an_error_that_says_what_may_have_been_meant(unknown: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match="there is no such option") as refused:
        parsed(**{unknown: "hidden-text"})
    assert refused.value.option == unknown
    assert refused.value.expected.startswith(f"Did you mean '{meant}'? Or set 'unknownOptions'")
    assert "hidden-text" not in str(refused.value)


@pytest.mark.parametrize(("unknown", "meant"), SLIPS)
def test_a_slip_may_be_warned_of_instead(
    unknown: str, meant: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = warned(caplog, **{unknown: "secret", "UNKNOWNOPTIONS": "Warn"})
    assert message == f"Option '{unknown}' has no effect here; did you mean '{meant}'?"


@pytest.mark.parametrize("name", ["value.mode", "value.positionalFieldMatching", "key.x"])
def test_an_unknown_option_of_values_is_an_error(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its effect would be missing in the values, and a warning is seen by few."""
    with pytest.raises(ConfigurationError, match="there is no such option") as refused:
        parsed(**{name: "hidden-text"})
    assert refused.value.option == name
    assert "hidden-text" not in str(refused.value)
    assert warned(caplog, **{name: "hidden-text", "unknownOptions": "warn"})


def test_a_slip_of_security_is_an_error_whatever_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"'kafka\.sasl\.pasword': is not supported"):
        parsed(kafka_sasl_pasword="hidden-text", unknownOptions="warn")


def test_unknown_options_fail_or_warn() -> None:
    with pytest.raises(ConfigurationError, match=r"found 'ignore'\. Give one of fail, warn"):
        parsed(unknownOptions="ignore")


def test_a_slip_of_what_has_no_effect_has_none_either(caplog: pytest.LogCaptureFixture) -> None:
    assert warned(caplog, **{"kafka.session.timeout": "1", "kafka.max.poll.recods": "1"}) == [
        "Option 'kafka.max.poll.recods' has no effect here: 'kafka.max.poll.records' has no effect "
        "either: records are not polled one by one; use 'maxOffsetsPerTrigger' or "
        "'maxRecordsPerPartition'",
        "Option 'kafka.session.timeout' has no effect here: 'kafka.session.timeout.ms' has no "
        "effect either: the group has no members, as Spark plans the partitions",
    ]


def test_an_option_like_no_other_is_named_without_a_guess(caplog: pytest.LogCaptureFixture) -> None:
    given = {"zzz": "1", "kafka.debug": "1", "multiLine": "true"}
    assert warned(caplog, **given) == [
        "Option 'kafka.debug' has no effect here",
        "Option 'multiLine' has no effect here",
        "Option 'zzz' has no effect here",
    ]


@pytest.mark.parametrize(
    "option", ["queryName", "startingVersion", "timestampFormat", "header", "checkpointLocation"]
)
def test_what_other_sources_and_sinks_have_is_only_warned_of(
    option: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = warned(caplog, **{option: "x"})
    assert message.startswith(f"Option '{option}' has no effect here")


def test_what_is_for_writing_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    (message,) = warned(caplog, topic="t")
    assert message == (
        "Option 'topic' has no effect here: it is for writing; 'subscribe' names the topics to read"
    )


def test_a_slip_of_what_is_for_writing_does_not_fail(caplog: pytest.LogCaptureFixture) -> None:
    (message,) = warned(caplog, topci="t")
    assert message == (
        "Option 'topci' has no effect here: 'topic' has no effect either: it is for writing; "
        "'subscribe' names the topics to read"
    )


def test_what_is_for_reading_is_warned_of_by_a_writer(caplog: pytest.LogCaptureFixture) -> None:
    given = {"Subscribe": "t", "kafka.group.id": "g", "kafka.fetch.min.bytes": "1", "topic": "t"}
    parse_sink_options({"kafka.bootstrap.servers": "broker:9092", **given})
    assert [record.getMessage() for record in caplog.records] == [
        "Option 'kafka.fetch.min.bytes' has no effect here: it is for reading",
        "Option 'kafka.group.id' has no effect here: it is for reading",
        "Option 'Subscribe' has no effect here: it is for reading; 'topic' names the topic to "
        "write to",
    ]


def test_what_spark_adds_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    of_a_table = {"option.startingOffsets": "earliest", "provider": "pykafka", "owner": "me"}
    assert not warned(caplog, path="x", paths="[]", **of_a_table)


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
