"""Transactional ids: those of a prefix differ from all others, and from other programs'."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.exactly_once.names import Names, TaskId, checked_prefix, prefix_of_query

PREFIXES = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
NUMBERS = st.integers(0, (1 << 32) - 1)


@given(PREFIXES, st.uuids(), NUMBERS, NUMBERS)
def test_an_id_says_what_it_was_made_of(
    prefix: str, run_id: object, task: int, attempt: int
) -> None:
    made = Names(prefix).task_id(str(run_id), task, attempt)
    assert TaskId.parse(str(made)) == made == TaskId(prefix, str(run_id), task, attempt)
    assert Names(prefix).is_task_id(str(made))


@given(st.text(max_size=60))
def test_an_id_of_another_program_is_none_or_is_read_back_as_it_is(text: str) -> None:
    for each in (text, f"p.run.{text}.0", f"p.{text}.0.0"):
        found = TaskId.parse(each)
        assert found is None or str(found) == each


@pytest.mark.parametrize(
    "other",
    [
        "p.control",
        "p.run.0",
        "p.run.0.0.0",
        "p.run.00.0",
        "p.run.-1.0",
        "p.run.٣.0",
        "p.run." + "9" * 5_000 + ".0",
        "p.run.4294967296.0",
        "p.run.0.0\n",
        "p p.run.0.0",
        ".run.0.0",
        "p..0.0",
        "",
    ],
)
def test_what_is_no_id_of_a_task(other: str) -> None:
    assert TaskId.parse(other) is None
    assert not Names("p").is_task_id(other)


@pytest.mark.parametrize("other", ["pp.run.0.0", "p-1.run.0.0", "P.run.0.0"])
def test_an_id_of_another_prefix(other: str) -> None:
    assert TaskId.parse(other) is not None
    assert not Names("p").is_task_id(other)


def test_a_run_with_a_dot_makes_no_more_parts() -> None:
    assert str(Names("p").task_id("a.b", 1, 2)) == "p.a_b.1.2"


@pytest.mark.parametrize("text", ["", " ", "a.b", "ä", "a b", "x" * 151, "a\nb"])
def test_what_is_no_prefix(text: str) -> None:
    with pytest.raises(ConfigurationError, match="Option 'transactionalIdPrefix'"):
        checked_prefix(text)


def test_a_prefix() -> None:
    assert checked_prefix(" billing_2-x ") == "billing_2-x"
    assert checked_prefix(prefix_of_query("1b4e28ba-2fa1-11d2-883f-0016d3cca427"))


def test_parts_of_a_decision_have_groups_of_their_own() -> None:
    names = Names("p")
    assert [names.group_id(part) for part in range(3)] == ["p", "p.1", "p.2"]
    assert names.control_id == "p.control"
