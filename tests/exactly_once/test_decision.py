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

from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Content,
    Decision,
    LastDecisions,
    NoDecisionError,
    Part,
    StoredDecision,
    Winner,
    joined,
)
from spark_kafka_source.exactly_once.decision_store import _last_of_each
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.producer import Place, ProducerId
from spark_kafka_source.topic_partition import TopicPartition

NAMES = Names("p")
BATCH = BatchId("query", "run", 7)
MOST = (1 << 63) - 1
NUMBERS, COUNTS = st.integers(0, (1 << 32) - 1), st.integers(0, MOST)
TOPICS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=249)
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, (1 << 31) - 1))
PLACES = st.builds(Place, PARTITIONS, COUNTS, st.uuids())
OF_0_3 = (
    '{"v":1,"query":"query","run":"a367a811-1606-5c4c-a46e-42b261999285","batch":7,"number":0,'
    '"parts":1,"rows":6,"bytes":60,"fingerprint":7,"query_run":"run","write":"t","part":0,'
    '"tasks":"AAAAAwAAAAEAAAAAAAAAAQABAAAAAAAFAAAABAAAAAAAAAEAAAAAAAAHAYvP5WgA"}'
)
"""What version 0.3.0 writes about two tasks."""


def winner(task: int, attempt: int = 0, producer_id: int = 1, started_at_ms: int = 5) -> Winner:
    name = str(NAMES.task_id(BATCH.run_id, task, attempt))
    return Winner(name, ProducerId(producer_id, attempt % 32_768), started_at_ms)


def decision(tasks: int) -> Decision:
    place = Place(TopicPartition("t", 1), 9, uuid.UUID(int=1))
    winners = (winner(task, producer_id=task) for task in range(tasks))
    winners = (each._replace(place=place) for each in winners)
    return Decision(BATCH, tuple(winners), checkpoint="/checkpoint")


def read(parts: list[str]) -> Decision:
    return joined(NAMES, [Part.parse(each) for each in parts])


@given(
    st.dictionaries(
        NUMBERS,
        st.tuples(NUMBERS, COUNTS, COUNTS, st.none() | PLACES),
        max_size=300,
    ),
    st.tuples(COUNTS, st.integers(0, 99)),
    st.builds(Content, COUNTS, COUNTS, st.none() | COUNTS),
    st.sampled_from(["", "t" * 249]),
    st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=4_096),
)
def test_what_is_written_is_read_back(
    tasks: dict[int, tuple[int, int, int, Place | None]],
    numbers: tuple[int, int],
    content: Content,
    write: str,
    checkpoint: str | None,
) -> None:
    winners = tuple(
        winner(task, *each)._replace(place=place) for task, (*each, place) in tasks.items()
    )
    batch = BatchId("query", "run", numbers[0])
    made = Decision(batch, winners, numbers[1], content, write, checkpoint)
    parts = made.parts()
    assert read(parts) == made
    assert all(len(each.encode()) <= 4096 for each in parts)


def test_a_decision_of_0_3_is_read_and_has_no_places() -> None:
    found = read([OF_0_3])
    space = "a367a811-1606-5c4c-a46e-42b261999285"
    assert found.winners == (
        Winner(f"p.{space}.3.1", ProducerId(1, 1), 5),
        Winner(f"p.{space}.4.0", ProducerId(1 << 40, 7), 1_700_000_000_000),
    )
    assert replace(found, winners=()) == Decision(BATCH, (), 0, Content(6, 60), "t")


@pytest.mark.parametrize(("tasks", "parts"), [(0, 1), (600, 10), (10_000, 153)])
def test_a_task_takes_53_characters(tasks: int, parts: int) -> None:
    assert len(decision(tasks).parts()) == parts


def test_the_longest_topic_and_the_largest_numbers_have_room() -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(3)]
    names = [str(NAMES.task_id(ids[2], task, 0)) for task in range(600)]
    winners = tuple(Winner(each, ProducerId(MOST, 32_767), MOST) for each in names)
    content = Content(MOST, MOST, MOST)
    made = Decision(BatchId(ids[0], ids[1], MOST), winners, 999, content, "t" * 249)
    assert read(made.parts()) == made


@pytest.mark.parametrize(
    "name", ["p.control", "p.other.0.0", "another program's"], ids=["control", "space", "program"]
)
def test_ids_that_do_not_share_a_space_cannot_be_decided(name: str) -> None:
    with pytest.raises(ValueError, match="is no id of a task in 'run'"):
        Decision(BATCH, (winner(0), Winner(name, ProducerId(1, 1), 0))).parts()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Decision(BatchId("q" * 4_100, "run", 1), ()), "a decision of 1 parts of 4"),
        (Decision(BatchId("q" * 501, "run", 1), ()), "its 'query' is"),
        (Decision(BATCH, (), checkpoint="/" * 4_097), "its 'checkpoint' is"),
        (Decision(BATCH, (), checkpoint=""), "its 'checkpoint' is"),
    ],
    ids=["a long part", "query", "checkpoint", "no checkpoint"],
)
def test_what_could_not_be_read_is_not_decided(made: Decision, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made.parts()


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
        {"v": 0},
        {"v": 3},
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
        {"rows": -1},
        {"bytes": True},
        {"print": -1},
        {"print": "7"},
    ],
    ids=str,
)
def test_a_damaged_part_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="it") as raised:
        Part.parse(changed(**values))
    assert not isinstance(raised.value, NoDecisionError)


def rows(*values: bytes, topics: Any = (["t", "0" * 32],)) -> str:
    shared = json.dumps({"topics": topics}).encode() + b"\n"
    return base64.b64encode(shared + b"".join(values)).decode()


ROW, OLD_ROW = 40, 24


@pytest.mark.parametrize(
    ("version", "tasks"),
    [
        (1, "?"),
        (1, "AAA"),
        (1, "ä" * 32),
        (1, base64.b64encode(bytes(OLD_ROW - 1)).decode()),
        (1, base64.b64encode(bytes(2 * OLD_ROW)).decode()),  # One task twice.
        (1, base64.b64encode(bytes(8) + b"\xff" * 8 + bytes(8)).decode()),
        (1, base64.b64encode(bytes(16) + b"\xff" * 2 + bytes(6)).decode()),
        (2, ""),
        (2, base64.b64encode(b"[]\n").decode()),
        (2, base64.b64encode(b'{"topics":7}\n').decode()),
        (2, rows(topics=["t"])),
        (2, rows(topics=[["t", "7"]])),
        (2, rows(topics=[["", "0" * 32]])),
        (2, rows(topics=[["\ud800", "0" * 32]])),
        (2, rows(bytes(ROW - 1))),
        (2, rows(bytes(ROW), bytes(ROW))),
        (2, rows(bytes(8) + b"\xff" + bytes(ROW - 9))),  # The producer id.
        (2, rows(bytes(18) + b"\xff" + bytes(ROW - 19))),  # The start.
        (2, rows(bytes(26) + b"\0\2" + bytes(12))),  # A topic that is not there.
        (2, rows(bytes(26) + b"\0\1\xff" + bytes(11))),  # The partition.
        (2, rows(bytes(32) + b"\xff" + bytes(7))),  # The offset.
    ],
)
def test_damaged_tasks_are_refused(version: int, tasks: str) -> None:
    with pytest.raises(ValueError):
        read([changed(v=version, tasks=tasks)])


@pytest.mark.parametrize("tasks", [rows(bytes(26) + b"\0\1" + bytes(12)), rows(bytes(ROW))])
def test_tasks_that_are_not_damaged_are_read(tasks: str) -> None:
    assert len(read([changed(tasks=tasks)]).winners) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts: parts[:1],
        lambda parts: parts[::-1],
        lambda parts: [parts[0], parts[0]],
        lambda parts: [*parts, parts[1]],
        lambda parts: [parts[0], decision(9).parts()[0]],
        lambda parts: [parts[0], parts[1].replace('"batch":7', '"batch":6')],
        lambda parts: [parts[0], parts[1].replace('"number":0', '"number":1')],
    ],
)
def test_parts_that_are_not_of_one_decision_are_refused(
    spoil: Callable[[list[str]], list[str]],
) -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        read(spoil(decision(80).parts()))


@given(st.text() | st.binary().map(lambda data: data.decode(errors="surrogateescape")))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read([text])


@given(
    st.dictionaries(
        st.sampled_from(["v", "query", "run", "batch", "number", "parts", "part", "tasks"])
        | st.sampled_from(["rows", "bytes", "fingerprint"]),
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


@given(st.integers(0, 2_000), st.binary(max_size=3), st.integers(0, 9))
def test_a_damaged_byte_is_refused_or_read(at: int, change: bytes, cut: int) -> None:
    """Nothing but `ValueError` is raised, of which `NoDecisionError` is one."""
    (text,) = decision(20).parts()
    tasks = base64.b64decode(json.loads(text)["tasks"])
    at %= len(tasks)
    spoilt = tasks[:at] + change + tasks[at + cut :]
    data = text.encode()
    whole = data[:at] + change + data[at + cut :]
    for damaged in (
        changed(tasks=base64.b64encode(spoilt).decode()),
        whole.decode(errors="surrogateescape"),
    ):
        try:
            found = read([damaged])
        except ValueError:
            continue
        assert read(found.parts()) == found


# -- copies ----------------------------------------------------------------------------------------


def at(*topics: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each, 0) for each in topics)


def kept(batch_id: int, write: str, *topics: str, number: int = 0) -> StoredDecision:
    batch = replace(BATCH, batch_id=batch_id)
    return StoredDecision(at(*topics), Decision(batch, (), number, write=write))


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        ([kept(7, "", "a", "b", "c")], [("a", "b", "c")]),
        # An earlier one may still be where the later one has no rows.
        ([kept(6, "", "a", "b"), kept(7, "", "b", "c")], [("b", "c")]),
        ([kept(7, "", "a", "b"), kept(7, "", "b", number=1)], [("b",)]),
        ([kept(7, "", "b", "a", number=1), kept(7, "", "c")], [("a", "b")]),
        # Each write has its own.
        (
            [kept(6, "", "a", "b"), kept(7, "c", "c"), kept(5, "d", "d")],
            [("a", "b"), ("c",), ("d",)],
        ),
    ],
)
def test_the_last_decision_of_each_write_is_where_its_copies_are(
    stored: list[StoredDecision], found: list[tuple[str, ...]]
) -> None:
    heads = {
        where: Part.parse(each.decision.parts()[0]) for each in stored for where in each.wheres
    }
    assert _last_of_each(heads) == [at(*each) for each in found]


@pytest.mark.parametrize(
    ("stored", "new", "found"),
    [
        ([kept(6, "", "a", "b")], kept(7, "", "b", "c"), [kept(7, "", "b", "c")]),
        # What is left of another write's copies tells its replay.
        (
            [kept(6, "", "a", "b")],
            kept(7, "b", "b"),
            [kept(6, "", "a"), kept(7, "b", "b")],
        ),
        ([kept(6, "a", "a")], kept(7, "", "a", "b"), [kept(7, "", "a", "b")]),
    ],
)
def test_what_is_kept_after_a_new_decision(
    stored: list[StoredDecision], new: StoredDecision, found: list[StoredDecision]
) -> None:
    after = LastDecisions(tuple(stored)).after(new)
    assert list(after.stored) == found
    assert list(after.at(at("b", "z"))) == [
        each.decision for each in found if at("b")[0] in each[0]
    ]
