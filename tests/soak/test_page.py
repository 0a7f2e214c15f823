"""The file and the page add up the outcomes of several runs."""

from dataclasses import replace
from pathlib import Path

from tools.soak.growth import Growth
from tools.soak.judge import Verdict
from tools.soak.outcome import Outcome, keep, kept
from tools.soak.page import render
from tools.soak.run import told

GROWTH = Growth("driver", 1200, (100, 5, 8, 20), (1.5, 0, 0, 0), (4.5, 0, 0, 0))
RUN = Outcome(
    seed=7,
    hours=1.5,
    verdicts={"written": Verdict(rows=1000), "copied": Verdict(rows=1000, again=3)},
    nemesis={"broker killed": 4, "runs": 1, "ended by itself": 1},
    growths=[GROWTH],
    diary=[(3, "broker killed", "broker 1")],
    errors={"producer": ["an error"]},
)


def test_outcomes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "outcomes"
    other = replace(RUN, seed=8)
    keep(RUN, path)
    keep(other, path)
    assert kept(path) == [RUN, other]


def test_a_jvm_may_grow() -> None:
    grown = replace(GROWTH, total=(60.0, 0, 0, 0))
    assert replace(RUN, growths=[GROWTH, replace(grown, role="driver: JVM")]).grown == []
    assert replace(RUN, growths=[grown]).grown == ["driver"]


def test_a_long_run_must_tell_whether_a_process_grows() -> None:
    short = replace(GROWTH, seconds=599)
    assert replace(RUN, growths=[GROWTH, short]).unjudged == ["driver"]
    assert replace(RUN, growths=[GROWTH]).unjudged == []
    assert replace(RUN, hours=0.5, growths=[short]).unjudged == []


def test_runs_add_up() -> None:
    wrong = replace(RUN, verdicts={"written": Verdict(rows=10, lost=1)})
    page = render([RUN, wrong])
    assert (
        "Runs: 2. Hours in all: 3.00. Anomalies: 1. Processes that ended by themselves: 2." in page
    )
    assert "| written | 1,010 | 1 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "| copied | 1,000 | 0 | 0 | 0 | 0 | 0 | 3 |" in page
    assert "| broker killed | 8 |" in page
    assert "| driver | 20 | 100 (+1.5) | 5 (+0.0) | 8 (+0.0) | 20 (+0.0) | no |" in page
    assert "| runs |" not in page


def test_errors_are_kept_without_stacks_and_directories() -> None:
    text = """12:45:28 [FAILED] it failed: Traceback (most recent call last):
  File "/home/me/project/stream.py", line 117, in look
    end = self._look()
package.conditions.DataLossError: [LOSS] orders-4 at /home/me/file was cut
Current State: ACTIVE"""
    assert told(text) == [
        "12:45:28 [FAILED] it failed: Traceback (most recent call last):",
        "package.conditions.DataLossError: [LOSS] orders-4 at file was cut",
    ]
