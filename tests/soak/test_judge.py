"""The judge finds each planted anomaly."""

import json
import struct
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import fastavro
import pytest

from tools.reliability.group_driver import Range
from tools.soak.judge import Stage, Verdict, judge_consumer, judge_group
from tools.soak.ledger import ABORTED, COMMITTED, UNKNOWN, Ledger, NumbersAt, Truth, read_ledger
from tools.soak.lines import Lines
from tools.soak.rows import FACTOR, KEYS, RECORD, amount_of, key_of, number_in

WRITTEN = range(100)
GONE = range(100, 150)


@pytest.fixture
def truth() -> Truth:
    """Return the truth of a hundred committed rows and fifty aborted ones."""
    found = Truth()
    for outcome, numbers in ((UNKNOWN, WRITTEN), (COMMITTED, WRITTEN), (ABORTED, GONE)):
        found.take(outcome, numbers)
    return found


def seen(*numbers: Iterable[int]) -> Stage:
    stage = Stage()
    for each in numbers:
        for number in each:
            stage.saw(number)
    return stage


def test_nothing_is_wrong(truth: Truth) -> None:
    assert seen(WRITTEN).verdict(truth) == Verdict(rows=100)
    assert seen(WRITTEN).verdict(truth).anomalies == 0


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([range(99)], Verdict(rows=99, lost=1)),
        ([WRITTEN, [7]], Verdict(rows=100, doubled=1)),
        ([WRITTEN, [120]], Verdict(rows=101, aborted=1)),
        ([WRITTEN, [150]], Verdict(rows=101, phantom=1)),
        ([range(50), range(50 + KEYS, 51 + KEYS), range(50, 50 + KEYS), range(51 + KEYS, 100)],
         Verdict(rows=100, out_of_order=1)),
    ],
)  # fmt: skip
def test_one_row_is_wrong(truth: Truth, numbers: list[Iterable[int]], expected: Verdict) -> None:
    found = seen(*numbers).verdict(truth)
    assert found == expected
    assert found.anomalies == 1


def test_rows_that_are_not_final_are_not_missed(truth: Truth) -> None:
    assert seen(range(60)).verdict(truth, 60).lost == 0
    assert seen(range(60)).verdict(truth, 61).lost == 1


def test_a_transaction_without_an_outcome_is_there_as_a_whole_or_not_at_all(truth: Truth) -> None:
    truth.take(UNKNOWN, range(150, 160))
    assert seen(WRITTEN).verdict(truth).anomalies == 0
    assert seen(WRITTEN, range(150, 160)).verdict(truth).anomalies == 0
    assert seen(WRITTEN, range(150, 157)).verdict(truth).lost == 3


def avro(number: int, amount: float, path: Path) -> bytes:
    with path.open("wb") as file:
        file.write(struct.pack(">bi", 0, 1))
        fastavro.schemaless_writer(file, RECORD, {"number": number, "amount": amount})
    return path.read_bytes()


def test_a_row_that_differs_is_a_phantom(truth: Truth, tmp_path: Path) -> None:
    key, path = key_of(40).encode(), tmp_path / "value"
    copied = avro(40, FACTOR * amount_of(40), path)
    assert number_in(key, copied, FACTOR) == 40
    wrong = [
        number_in(key_of(41).encode(), copied, FACTOR),
        number_in(key, copied),
        number_in(key, copied[:-1], FACTOR),
        number_in(key, None),
    ]
    assert wrong == [None] * 4
    stage = seen(WRITTEN)
    for each in wrong:
        stage.saw(each)
    assert stage.verdict(truth) == Verdict(rows=100, phantom=4)


def test_a_ledger_is_read_while_it_grows(tmp_path: Path) -> None:
    path, found = tmp_path / "ledger", Truth()
    lines = Lines(path)
    with closing(Ledger(path)) as ledger:
        read_ledger(lines.advance(), found)
        assert found.end == 0
        ledger.note(UNKNOWN, range(10))
    with path.open("a") as file:
        file.write("committed 0")
    read_ledger(lines.advance(), found)
    assert found.unknown == [range(10)]
    with path.open("a") as file:
        file.write(" 10\n")
    read_ledger(lines.advance(), found)
    assert (found.unknown, found.committed, found.end) == ([], 10, 10)
    with closing(Ledger(path)) as ledger:
        assert ledger.next_number == 10


@pytest.fixture
def numbers() -> NumbersAt:
    """Return two partitions with fifty rows each. Readers must not see offset 10."""
    found = NumbersAt()
    for number in WRITTEN:
        at = number // 2
        found.put(number % 2, at + (at >= 10), number)
    return found


Read = dict[str, dict[int, list[Range]]]


def read() -> Read:
    """Return the reads of two queries. The first partition changes its owner."""
    return {
        "a": {0: [Range(0, 0, 10), Range(0, 11, 20)]},
        "b": {0: [Range(0, 20, 51)], 1: [Range(0, 0, 10), Range(1, 11, 51)]},
    }


def test_a_group_reads_all(truth: Truth, numbers: NumbersAt) -> None:
    assert judge_group(read(), numbers).verdict(truth) == Verdict(rows=100)


@pytest.mark.parametrize(
    ("query", "more", "expected"),
    [
        ("a", (0, Range(3, 20, 25)), Verdict(rows=100, again=5)),
        ("b", (1, Range(3, 49, 51)), Verdict(rows=100, doubled=2, out_of_order=1)),
        ("a", (0, Range(3, 10, 11)), Verdict(rows=100, aborted=1, out_of_order=1)),
        ("b", (0, Range(3, 51, 52)), Verdict(rows=100, phantom=1)),
    ],
)
def test_a_group_reads_too_much(
    truth: Truth, numbers: NumbersAt, query: str, more: tuple[int, Range], expected: Verdict
) -> None:
    found = read()
    partition, added = more
    found[query][partition].append(added)
    assert judge_group(found, numbers).verdict(truth) == expected


def test_a_group_loses_rows(truth: Truth, numbers: NumbersAt) -> None:
    found = read() | {"a": {0: [Range(0, 0, 10), Range(0, 11, 18)]}}
    assert judge_group(found, numbers).verdict(truth) == Verdict(rows=98, lost=2)


def notes(*found: dict[str, object]) -> list[str]:
    return [*map(json.dumps, found), '{"partition": 0, "fir']


def test_a_consumer_may_read_again_what_it_has_not_committed(truth: Truth) -> None:
    first = {"partition": 0, "first": 0, "numbers": list(WRITTEN)}
    again = {"partition": 0, "first": 90, "numbers": [90, 91]}
    stage = Stage()
    judge_consumer(notes(first, {"committed": {"0": 90}}, again), stage, {})
    assert stage.verdict(truth) == Verdict(rows=100, again=2)


def test_a_consumer_must_not_read_again_what_it_has_committed(truth: Truth) -> None:
    first = {"partition": 0, "first": 0, "numbers": list(WRITTEN)}
    again = {"partition": 0, "first": 89, "numbers": [89]}
    stage, committed = Stage(), dict[int, int]()
    judge_consumer(notes(first, {"committed": {"0": 90}}), stage, committed)
    judge_consumer(notes(again), stage, committed)
    assert stage.verdict(truth) == Verdict(rows=100, doubled=1)
