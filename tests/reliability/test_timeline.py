"""The judge of a group's members finds each possible fault, and no other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.timeline import Commit, Judgement, Life, judge

WHERE = ("t", 0)
END = 10


def life(path: Path, *lines: tuple[int, str, dict[str, Any]], **found: Any) -> Life:
    """Return the life of a member that writes these lines: moment, act, details."""
    rows = [{"at_ms": at_ms, "what": what} | more for at_ms, what, more in lines]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    life = Life.read(path)
    for name, value in found.items():
        setattr(life, name, value)
    return life


def begins(at_ms: int, *, ours: bool = True) -> tuple[int, str, dict[str, Any]]:
    return at_ms, "begins", {"ours": ours}


def moved(at_ms: int, what: str) -> tuple[int, str, dict[str, Any]]:
    return at_ms, what, {"where": [WHERE]}


def read(at_ms: int, first: int, end: int) -> tuple[int, str, dict[str, Any]]:
    return at_ms, "read", {"ranges": [[*WHERE, first, end]]}


ONE = (begins(0), moved(1, "assigned"), read(2, 0, 5), moved(4, "revoked"))


def found(lives: list[Life], *commits: Commit) -> Judgement:
    return judge(lives, {WHERE: commits}, {WHERE: END})


def test_what_is_allowed(tmp_path: Path) -> None:
    one = life(tmp_path / "a", *ONE)
    two = life(tmp_path / "b", begins(0), moved(5, "assigned"), read(6, 3, END))
    judged = found([one, two], Commit(3, 3, "a"), Commit(7, END, "b"))
    assert (judged.wrong, judged.theirs) == ([], [])
    assert (judged.lost, judged.doubled, judged.doubled_although_committed) == (0, 2, 0)


def test_one_who_is_dead_or_frozen_may_be_overtaken(tmp_path: Path) -> None:
    zombie = (begins(0), moved(1, "assigned"), read(2, 0, 5), read(9, 5, 6))
    two = life(tmp_path / "b", begins(0), moved(5, "assigned"), read(6, 0, END))
    for excuse in ({"is_dead": True}, {"frozen": [(3, 8)]}):
        judged = found([life(tmp_path / "a", *zombie, **excuse), two])
        assert judged.wrong == []
        assert judged.zombies == 1
    assert "b's from 5 on, a's until None" in found([life(tmp_path / "a", *zombie), two]).wrong[0]


@pytest.mark.parametrize(
    ("lines", "commits", "text"),
    [
        ([read(6, 2, END)], [Commit(3, 3)], "b begins at 2 though [3] were committed"),
        ([read(6, 4, END)], [Commit(3, 3)], "b begins at 4 though [3] were committed"),
        ([read(6, 3, 5), read(7, 6, END)], [Commit(3, 3)], "from 5 to 6 in one stint"),
        ([read(6, 3, 5), read(7, 4, END)], [Commit(3, 3)], "from 5 to 4 in one stint"),
        ([read(6, 3, END)], [Commit(3, 3), Commit(7, 2)], "is taken back by"),
        ([read(6, 3, END)], [Commit(3, 3), Commit(7, END + 1)], "is beyond 10, read by then"),
        ([read(6, 3, 4)], [Commit(3, 3), Commit(7, 4, "a")], "though it is b's since 5"),
        ([moved(6, "revoked"), read(7, 3, END)], [Commit(3, 3)], "which it does not own"),
        ([(6, "failed", {"error": "boom"})], [Commit(3, 3)], "b: boom"),
    ],
)
def test_what_is_not(
    tmp_path: Path, lines: list[tuple[int, str, dict[str, Any]]], commits: list[Commit], text: str
) -> None:
    one = life(tmp_path / "a", *ONE)
    two = life(tmp_path / "b", begins(0), moved(5, "assigned"), *lines)
    judged = found([one, two], *commits)
    assert len(judged.wrong) == 1
    assert text in judged.wrong[0]


def test_what_is_lost_or_doubled_is_counted(tmp_path: Path) -> None:
    one = life(tmp_path / "a", *ONE)
    two = life(tmp_path / "b", begins(0), moved(5, "assigned"), read(6, 3, END - 1))
    judged = found([one, two], Commit(3, 4))
    assert (judged.lost, judged.doubled, judged.doubled_although_committed) == (1, 2, 1)


def test_faults_of_others_members_are_kept_apart(tmp_path: Path) -> None:
    one = life(tmp_path / "a", *ONE)
    two = life(tmp_path / "b", begins(0, ours=False), moved(5, "assigned"), read(6, 2, END))
    judged = found([one, two], Commit(3, 3))
    assert (judged.wrong, len(judged.theirs)) == ([], 1)
