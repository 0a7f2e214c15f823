"""Options for start and end: their precedence, their meaning, and refused values."""

import json
import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.spark.source.bounds import (
    AtTimestamp,
    Bound,
    Committed,
    Extreme,
    Given,
    NamedBound,
    ending_bound,
    starting_bound,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1

PARTITIONS = '{"a":{"0":5,"1":%d}}'
BOTH = [(starting_bound, "starting"), (ending_bound, "ending")]
Parse = Callable[[Settings], NamedBound | None]


def starting(**options: str) -> NamedBound | None:
    return starting_bound(Settings({name.lower(): text for name, text in options.items()}))


def ending(**options: str) -> NamedBound | None:
    return ending_bound(Settings({name.lower(): text for name, text in options.items()}))


# -- precedence ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parse", "which"), BOTH)
def test_one_time_counts_before_times_and_those_before_offsets(parse: Parse, which: str) -> None:
    given_options = {
        f"{which}Timestamp": "7",
        f"{which}OffsetsByTimestamp": PARTITIONS % 8,
        f"{which}Offsets": PARTITIONS % 9,
    }
    if_none = None if which == "starting" else Extreme.LATEST
    bounds: list[Bound] = [
        AtTimestamp(7, if_none),
        AtTimestamp({A0: 5, A1: 8}, if_none),
        Given({A0: 5, A1: 9}),
    ]
    options = {name.lower(): text for name, text in reversed(given_options.items())}
    for name, bound in zip(given_options, bounds, strict=True):
        assert parse(Settings(options)) == NamedBound(name, bound)
        del options[name.lower()]
    assert parse(Settings({})) is None


def test_what_does_not_count_is_not_looked_at() -> None:
    """The value of an unused option is not parsed. Spark's own connector does the same."""
    assert starting(startingTimestamp="7", startingOffsets="nowhere") == NamedBound(
        "startingTimestamp", AtTimestamp(7, None)
    )


# -- meaning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("earliest", Extreme.EARLIEST),
        (" LATEST ", Extreme.LATEST),
        (PARTITIONS % -2, Given({A0: 5, A1: -2})),
        (PARTITIONS % -1, Given({A0: 5, A1: -1})),
        (" " + PARTITIONS % 0, Given({A0: 5, A1: 0})),
        ('{"a":"earliest","b":{"0":1}}', Given({TopicPartition("b", 0): 1}, {"a": -2})),
        ("Committed", Committed(None)),
    ],
)
def test_starting_offsets(text: str, bound: Bound) -> None:
    assert starting(startingOffsets=text) == NamedBound("startingOffsets", bound)


@pytest.mark.parametrize(
    ("text", "bound"),
    [("latest", Extreme.LATEST), (PARTITIONS % -1, Given({A0: 5, A1: -1}))],
)
def test_ending_offsets(text: str, bound: Bound) -> None:
    assert ending(endingOffsets=text) == NamedBound("endingOffsets", bound)


@pytest.mark.parametrize("timestamp", [0, 1_760_000_000_000, 2**63 - 1])
def test_times_are_in_milliseconds_from_0(timestamp: int) -> None:
    found = starting(startingTimestamp=f" {timestamp} ")
    assert found == NamedBound("startingTimestamp", AtTimestamp(timestamp, None))
    found = ending(endingOffsetsByTimestamp=PARTITIONS % timestamp)
    by_partition = AtTimestamp({A0: 5, A1: timestamp}, Extreme.LATEST)
    assert found == NamedBound("endingOffsetsByTimestamp", by_partition)


@pytest.mark.parametrize(("parse", "which"), BOTH)
def test_times_may_be_dates(parse: Parse, which: str) -> None:
    one_pm = 1_777_899_600_000
    found = parse(Settings({f"{which}timestamp": "2026-05-04T15:00:00+02:00"}))
    assert found is not None and isinstance(found.bound, AtTimestamp)
    assert found.bound.timestamps == one_pm
    times = {f"{which}offsetsbytimestamp": '{"a":{"0":"2026-05-04T13:00:00Z","1":"7"}}'}
    found = parse(Settings(times))
    assert found is not None and isinstance(found.bound, AtTimestamp)
    assert found.bound.timestamps == {A0: one_pm, A1: 7}


@pytest.mark.parametrize(("strategy", "if_none"), [("error", None), ("Latest ", Extreme.LATEST)])
def test_where_no_record_is_so_late_the_strategy_holds(
    strategy: str, if_none: Extreme | None
) -> None:
    found = starting(startingTimestamp="7", startingOffsetsByTimestampStrategy=strategy)
    assert found == NamedBound("startingTimestamp", AtTimestamp(7, if_none))


def test_at_the_end_no_match_is_the_latest_whatever_the_strategy_at_the_start() -> None:
    found = ending(endingTimestamp="7", startingOffsetsByTimestampStrategy="error")
    assert found == NamedBound("endingTimestamp", AtTimestamp(7, Extreme.LATEST))


@pytest.mark.parametrize(
    ("strategy", "if_none"),
    [("error", None), ("earliest", Extreme.EARLIEST), ("LATEST", Extreme.LATEST)],
)
def test_where_nothing_is_committed_a_strategy_of_its_own_holds(
    strategy: str, if_none: Extreme | None
) -> None:
    found = starting(startingOffsets="committed", startingOffsetsCommittedStrategy=strategy)
    assert found == NamedBound("startingOffsets", Committed(if_none))


# -- refused values --------------------------------------------------------------------------------

NO_TIME = [
    "", "now", "-1", "-2", "1.0", "+1", "1_0", "٣", "1e3", "{}", str(2**63), "9" * 5_000,
    "0" * 5_000, "0" * 20 + "9" * 30,
]  # fmt: skip
TIMES_EXAMPLE = '{"topic":{"0":1760000000000,'
NO_TIMES = [
    "", "7", "latest", "[]", "{}", '{"a":{"0":-1}}', '{"a":{"0":"x"}}', '{"a":{"0":1.0}}',
    "2026-05-04Z",
]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "text", "right"),
    [
        *(("startingTimestamp", text, "'1760000000000'") for text in NO_TIME),
        *(("endingTimestamp", text, "'1760000000000'") for text in NO_TIME),
        *(("startingOffsetsByTimestamp", text, TIMES_EXAMPLE) for text in NO_TIMES),
        *(("endingOffsetsByTimestamp", text, TIMES_EXAMPLE) for text in NO_TIMES),
        ("startingOffsets", "nearest", "earliest or latest or committed"),
        ("startingOffsets", '{"a":{"0":-3}}', "-2 for earliest, -1 for latest"),
        ("endingOffsets", "earliest", "Give latest, or JSON"),
        ("endingOffsets", "committed", "Give latest, or JSON"),
        ("endingOffsets", '{"a":{"0":-2}}', "an offset from 0, -1 for latest"),
        ("startingOffsetsByTimestampStrategy", "earliest", "error or latest"),
        ("startingOffsetsByTimestampStrategy", "", "error or latest"),
    ],
    ids=lambda text: text[:40],
)
def test_a_wrong_value_is_refused_with_a_right_one(option: str, text: str, right: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        starting(**{option: text})
        ending(**{option: text})
    assert refused.value.option == option
    assert right in str(refused.value)
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    ("option", "text", "found"),
    [
        (
            "startingOffsets",
            '{"events":{"0":"x"}}',
            "found 'x' for partition 0 of topic 'events'. Give an offset from 0, -2 for earliest",
        ),
        (
            "endingOffsets",
            '{"events":{"7":-2}}',
            "found -2 for partition 7 of topic 'events'. Give",
        ),
        ("startingOffsets", '{"events":{"0":null}}', "found 'null' for partition 0 of topic"),
        ("endingOffsetsByTimestamp", '{"events":{"0":true}}', "found 'true' for partition 0"),
        ("startingOffsets", '{"events":{"x":0}}', "partition 'x' is no number of a partition"),
        (
            "endingOffsetsByTimestamp",
            '{"events":{"3":1700000000}}',
            "found 1700000000 for partition 3 of topic 'events', which is "
            "'1970-01-20T16:13:20.000Z' in milliseconds. In seconds it is '2023-",
        ),
        (
            "startingOffsetsByTimestamp",
            '{"events":{"3":"2026-05-04T13:00"}}',
            "found '2026-05-04T13:00' for partition 3 of topic 'events', which has no zone",
        ),
        (
            "startingOffsetsByTimestamp",
            '{"events":{"3":"20260504"}}',
            "found 20260504 for partition 3 of topic 'events', which is '1970-01-01T05:37:40.504Z' "
            "in milliseconds. For the date write '2026-05-04Z'",
        ),
        (
            "startingTimestamp",
            "1700000000",
            "found 1700000000, which is '1970-01-20T16:13:20.000Z'",
        ),
        ("endingTimestamp", "1700000000", "write 1700000000000"),
    ],
)
def test_a_wrong_value_is_named_with_where_it_stands(option: str, text: str, found: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        starting(**{option: text})
        ending(**{option: text})
    assert refused.value.option == option
    assert found in str(refused.value)


def test_an_unknown_strategy_for_what_is_not_committed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"CommittedStrategy.*error or latest or earliest"):
        starting(startingOffsets="committed", startingOffsetsCommittedStrategy="none")


NAMES = [
    "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "endingOffsets",
    "startingOffsetsByTimestampStrategy", "startingOffsetsCommittedStrategy", "endingTimestamp",
    "endingOffsetsByTimestamp",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
TEXTS = st.one_of(
    st.text(),
    st.text(string.digits, min_size=15, max_size=40),
    st.text(string.digits + "+-. ", max_size=25),
    st.text('{}[]:,"-0123456789ab ', max_size=25),
    st.dictionaries(st.text(max_size=3), st.dictionaries(st.integers(), st.integers())).map(
        json.dumps
    ),
    JSON.map(json.dumps),
    st.sampled_from(["earliest", "latest", "committed", "error", "0" * 5_000]),
)


@given(st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=4))
def test_any_text_is_understood_or_refused_by_name(options: dict[str, str]) -> None:
    for parse in (starting, ending):
        try:
            found = parse(**options)
        except ConfigurationError as refused:
            assert refused.option in options
            assert refused.expected
        else:
            assert found is None or found.option in options
            assert found is None or _is_in_range(found.bound)


def _is_in_range(bound: Bound) -> bool:
    match bound:
        case Given(offsets, whole):
            return {*whole.values()} <= {-2, -1} and all(-2 <= o < 2**63 for o in offsets.values())
        case AtTimestamp(int(timestamp)):
            return 0 <= timestamp < 2**63
        case AtTimestamp(timestamps):
            assert not isinstance(timestamps, int)
            return all(0 <= timestamp < 2**63 for timestamp in timestamps.values())
    return True
