"""The record of a decision: a written record can be read, and anything else is refused."""

import base64
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.exactly_once import BatchId, Content, Decision, Names, Winner
from spark_kafka_source.exactly_once.decision import NoDecisionError, Part, joined, part_count
from spark_kafka_source.producer import PreparedTransaction, ProducerId

NAMES = Names("p")
BATCH = BatchId("query", "run", 7)
NUMBERS = st.integers(0, (1 << 32) - 1)
COUNTS = st.integers(0, (1 << 63) - 1)
OF_0_2_0 = (
    '{"v":1,"query":"query","run":"run","batch":7,"number":0,"parts":1,"part":0,'
    '"tasks":"AAAAAwAAAAEAAAAAAAAAAQABAAAAAAAF"}'
)
"""What version 0.2.0 writes about task 3."""


def winner(task: int, attempt: int = 0, producer_id: int = 1, started_at_ms: int = 5) -> Winner:
    name = str(NAMES.task_id(BATCH.run_id, task, attempt))
    return Winner(name, ProducerId(producer_id, attempt % 32_768), started_at_ms)


def decision(tasks: int) -> Decision:
    return Decision(BATCH, tuple(winner(task, producer_id=task) for task in range(tasks)))


def read(parts: list[str]) -> Decision:
    return joined(NAMES, [Part.parse(each) for each in parts])


@given(
    st.dictionaries(
        NUMBERS,
        st.tuples(NUMBERS, st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 48) - 1)),
        max_size=300,
    ),
    st.integers(0, (1 << 63) - 1),
    st.integers(0, 99),
    st.none() | st.builds(Content, COUNTS, COUNTS, st.none() | COUNTS),
    st.none() | st.sampled_from(["", "t" * 249]),
)
def test_what_is_written_is_read_back(
    tasks: dict[int, tuple[int, int, int]],
    batch_id: int,
    number: int,
    content: Content | None,
    write: str | None,
) -> None:
    winners = tuple(winner(task, *each) for task, each in tasks.items())
    made = Decision(BatchId("query", "run", batch_id), winners, number, content, write)
    parts = made.parts()
    assert read(parts) == made
    assert len(parts) == part_count(len(winners))
    assert all(len(each.encode()) <= 4096 for each in parts)


def test_decisions_are_readable_by_version_0_2_0_and_from_it() -> None:
    """It ignores fields that it does not know."""
    made = Decision(BATCH, (winner(3, 1),))
    assert made.parts() == [OF_0_2_0]
    assert read([OF_0_2_0]) == made
    (ours,) = replace(made, content=Content(6, 60, 7), write="t").parts()
    fields = json.loads(ours)
    assert fields.pop("write") == "t"
    assert [fields.pop(each) for each in ("rows", "bytes", "print")] == [6, 60, 7]
    assert fields == json.loads(OF_0_2_0)


def test_a_fingerprint_of_version_0_3_is_left_aside() -> None:
    """It is of another kind."""
    fields = json.loads(OF_0_2_0) | {"rows": 6, "bytes": 60, "fingerprint": 7}
    assert read([json.dumps(fields)]).content == Content(6, 60)


def test_the_longest_topic_and_the_largest_numbers_have_room() -> None:
    most, ids = (1 << 63) - 1, [str(uuid.UUID(int=number)) for number in range(3)]
    names = [str(NAMES.task_id(ids[2], task, 0)) for task in range(600)]
    winners = tuple(Winner(each, ProducerId(most, 32_767), (1 << 48) - 1) for each in names)
    batch, content = BatchId(ids[0], ids[1], most), Content(most, most, most)
    made = Decision(batch, winners, 999, content, "t" * 249)
    assert read(made.parts()) == made


@pytest.mark.parametrize("tasks", [0, 1, 109, 110, 600, 10_000])
def test_how_many_parts(tasks: int) -> None:
    assert len(decision(tasks).parts()) == part_count(tasks)


def test_by_what_a_winner_is_ended() -> None:
    assert winner(3, 1).transaction == PreparedTransaction("p.run.3.1", ProducerId(1, 1))


@pytest.mark.parametrize(
    "name", ["p.control", "p.other.0.0", "another program's"], ids=["control", "space", "program"]
)
def test_ids_of_which_0_2_0_could_not_make_the_others_cannot_be_decided(name: str) -> None:
    with pytest.raises(ValueError, match="is no id of a task of batch 7"):
        Decision(BATCH, (winner(0), Winner(name, ProducerId(1, 1), 0))).parts()


def test_where_version_0_2_0_has_the_run_is_what_the_ids_have() -> None:
    """It makes the ids of the winners with it, and so can end them."""
    task_id = NAMES.task_id(NAMES.space, 3, 1)
    made = Decision(BATCH, (Winner(str(task_id), ProducerId(1, 1), 5),))
    (text,) = made.parts()
    assert read([text]) == made
    fields = json.loads(text)
    assert (fields.pop("run"), fields.pop("query_run")) == (NAMES.space, BATCH.run_id)
    assert fields.items() < json.loads(OF_0_2_0).items()


def test_ids_that_are_too_long_cannot_be_decided() -> None:
    with pytest.raises(ValueError, match="a decision of 1 parts of 4"):
        Decision(BatchId("q" * 4_100, "run", 1), ()).parts()
    with pytest.raises(ValueError, match="its 'query' is"):
        Decision(BatchId("q" * 501, "run", 1), ()).parts()


@pytest.mark.parametrize(
    "text",
    ["", "null", "7", '"v"', "[]", "{}", "consumer-1", "[" * 4_000, '{"v":1}', "\ud800", "NaN"],
)
def test_what_others_commit_is_no_decision(text: str) -> None:
    with pytest.raises(NoDecisionError, match="is no decision"):
        Part.parse(text)


def changed(**values: Any) -> str:
    return json.dumps(json.loads(decision(2).parts()[0]) | values)


@pytest.mark.parametrize(
    "values",
    [
        {"v": 2},
        {"v": "1"},
        {"batch": -1},
        {"batch": 7.0},
        {"batch": True},
        {"batch": "7"},
        {"batch": float("inf")},
        {"batch": 1 << 63},
        {"number": None},
        {"write": 7},
        {"write": "t" * 250},
        {"query": ""},
        {"query": 7},
        {"query": "x" * 501},
        {"run": "\ud800"},
        {"run": None},
        {"parts": 0},
        {"parts": 1_001},
        {"parts": True},
        {"part": 1},
        {"part": -1},
        {"tasks": None},
        {"tasks": []},
        {"rows": 1},
        {"bytes": 1},
        {"print": 1},
        {"rows": -1, "bytes": 0},
        {"rows": 1, "bytes": True},
        {"rows": 1, "bytes": 0, "print": "7"},
    ],
    ids=str,
)
def test_a_damaged_part_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="it") as raised:
        Part.parse(changed(**values))
    assert not isinstance(raised.value, NoDecisionError)


@pytest.mark.parametrize(
    "tasks",
    [
        "?",
        "AAA",
        base64.b64encode(bytes(23)).decode(),
        base64.b64encode(bytes(48)).decode(),
        base64.b64encode(bytes(8) + b"\xff" * 8 + bytes(8)).decode(),
        base64.b64encode(bytes(16) + b"\xff" * 2 + bytes(6)).decode(),
        "ä" * 32,
    ],
)
def test_damaged_tasks_are_refused(tasks: str) -> None:
    with pytest.raises(ValueError):
        read([changed(tasks=tasks)])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts: parts[:1],
        lambda parts: parts[::-1],
        lambda parts: [parts[0], parts[0]],
        lambda parts: [*parts, parts[1]],
        lambda parts: [parts[0], decision(109).parts()[0]],
        lambda parts: [parts[0], parts[1].replace('"batch":7', '"batch":6')],
        lambda parts: [parts[0], parts[1].replace('"number":0', '"number":1')],
    ],
)
def test_parts_that_are_not_of_one_decision_are_refused(
    spoil: Callable[[list[str]], list[str]],
) -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        read(spoil(decision(200).parts()))


@given(st.text() | st.binary().map(lambda data: data.decode(errors="surrogateescape")))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read([text])


@given(
    st.dictionaries(
        st.sampled_from(["v", "query", "run", "batch", "number", "parts", "part", "tasks"])
        | st.sampled_from(["rows", "bytes", "print"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
    )
)
def test_any_values_are_read_or_refused(values: dict[str, Any]) -> None:
    """Every accepted record can be written, and has ids of this prefix only."""
    try:
        found = read([changed(**values)])
    except ValueError:
        return
    assert read(found.parts()) == found
    assert all(NAMES.is_task_id(each.transactional_id) for each in found.winners)
