"""Outcomes of several runs add up, in the file and on the page."""

from dataclasses import replace
from pathlib import Path

from tests.soak.growth import Growth
from tests.soak.judge import Verdict
from tests.soak.outcome import Outcome, keep, kept
from tests.soak.page import render

GROWTH = Growth("driver", 1200, (100, 5, 8, 20), (1.5, 0, 0, 0), (4.5, 0, 0, 0))
RUN = Outcome(
    seed=7,
    hours=1.5,
    verdicts={"written": Verdict(rows=1000), "copied": Verdict(rows=1000, again=3)},
    nemesis={"broker killed": 4, "runs": 1},
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


def test_runs_add_up() -> None:
    wrong = replace(RUN, verdicts={"written": Verdict(rows=10, lost=1)})
    page = render([RUN, wrong])
    assert "2 runs, 3.00 hours in all: 1 anomalies." in page
    assert "| written | 1,010 | 1 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "| copied | 1,000 | 0 | 0 | 0 | 0 | 0 | 3 |" in page
    assert "| broker killed | 8 |" in page
    assert "| driver | 20 | 100 (+1.5) | 5 (+0.0) | 8 (+0.0) | 20 (+0.0) | no |" in page
    assert "runs |" not in page
