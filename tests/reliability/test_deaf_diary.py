"""Figures from a member's lines, and their table. A mistake here could hide a fault."""

import pytest

from tools.reliability.deaf import diary as module
from tools.reliability.deaf.clients import JAVA, OURS
from tools.reliability.deaf.diary import Diary, missed
from tools.reliability.deaf.outcome import COMMIT, RECORDS, Outcome
from tools.reliability.deaf.table import render, render_took

T0, T1 = ("t", 0), ("t", 1)


def said(*lines: str) -> Diary:
    diary = Diary()
    for line in lines:
        diary.add(line + "\n")
    return diary


def test_a_poll_that_has_not_ended_counts_as_long_as_it_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    diary = said("> poll 1000", "< poll 1100 100 -", "> poll 1100")
    monkeypatch.setattr(module, "now_ms", lambda: 9_100)
    assert diary.longest_poll_ms() == 8_000


def test_polls_that_ended_before_a_fault_do_not_count() -> None:
    diary = said("> poll 1000", "< poll 1900 900 -", "> poll 1900", "< poll 2000 100 -")
    assert diary.longest_poll_ms(since_ms=1_950) == 100


def test_a_commit_counts_that_was_begun_after_the_fault_and_succeeded() -> None:
    diary = said(
        "> commit 900",
        "< commit 1100 200 -",
        "> commit 1200",
        "< commit 1300 100 TimeoutError('of a broker')",
        "> commit 1400",
        "< commit 1450 50 -",
    )
    assert diary.succeeded_after_ms("commit", 1_000) == 450
    assert diary.succeeded_after_ms("commit", 1_500) is None
    assert diary.errors() == ["commit: TimeoutError('of a broker')"]


def test_gaps_reach_from_the_fault_to_the_end() -> None:
    diary = said("read 1000 t:0 0 5", "read 1400 t:0 5 6", "read 1500 t:1 0 1")
    assert diary.longest_gap_ms(T0, 900, 1_500) == 400
    assert diary.longest_gap_ms(T1, 900, 1_600) == 600
    assert diary.read_at_ms(T0, 5) == 1_400
    assert diary.read_at_ms(T0, 6) is None


def test_what_is_owned_is_what_was_said_last() -> None:
    diary = said("ready", "owns 1000 3 t:0 t:1", "owns 1100 4", "a line of a logger's")
    assert [(each.generation, each.partitions) for each in diary.owned] == [
        (3, frozenset({T0, T1})),
        (4, frozenset()),
    ]
    assert diary.is_ready


def test_records_that_nobody_read_and_those_that_were_read_twice_are_counted() -> None:
    one = said("read 1 t:0 0 5", "read 2 t:0 7 9")
    other = said("read 3 t:0 3 5", "read 4 t:1 2 3")
    assert missed([one, other], {T0: 10, T1: 3}) == (2 + 1 + 2, 2)
    assert missed([one], {T0: 5}) == (0, 0)


def test_a_table_has_medians_and_worst_and_what_never_came_to_pass() -> None:
    found = {
        "a fault": [
            Outcome(OURS, {RECORDS: 1.0, COMMIT: 2.0}, 0.1),
            Outcome(OURS, {RECORDS: 1.0, COMMIT: None}, 0.1),
            Outcome(OURS, {RECORDS: 3.0, COMMIT: None}, 0.2, lost=4),
            Outcome(JAVA, {RECORDS: None}, 0.1),
        ]
    }
    rows = render(found, (OURS, JAVA), 75).splitlines()
    assert rows[0] == "**A fault**"
    assert rows[4:] == [
        f"| {RECORDS} | 1.0 (3.0) | > 75 |",
        f"| {COMMIT} | > 75 (> 75) | - |",
        "| longest `poll(100)` | 0.1 (0.2) | 0.1 |",
        "| records not read by then | 4 | 0 |",
    ]
    two = {"a fault": found["a fault"][1:3]}
    assert render(two, (OURS,), 75).splitlines()[4] == f"| {RECORDS} | 3.0 |"
    assert render_took({"a fault": {"a way": [1.0]}}).splitlines()[-1] == "| a fault | 1.0 |"


def test_what_is_late_is_named() -> None:
    outcome = Outcome(OURS, {RECORDS: 1.0, COMMIT: None}, 1.5, lost=1, errors=("commit: x",))
    assert outcome.exceeding(15.0, 1.0) == [
        f"{COMMIT}: None",
        "longest `poll(100)`: 1.5",
        "lost 1",
        "commit: x",
    ]
    assert not Outcome(OURS, {RECORDS: 1.0}, 0.1).exceeding(15.0, 1.0)
