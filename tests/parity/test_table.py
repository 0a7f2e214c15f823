"""Table of `make parity`: equal results, differences with reasons, failures, and completeness."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parity.differences import DIFFERENCES, Difference
from tests.parity.scenario import OURS, PEER
from tests.parity.suites import SUITES, LeftOut, Suite
from tests.parity.table import (
    MARKS,
    Outcome,
    instances,
    outcome,
    render,
    split_name,
)

PROJECT = Path(__file__).parents[2]
AS_DIFFERENT = {
    "life/deleted": Difference("better", "says which"),
    "life/grown_again[x]": Difference("different", "an older format"),
}
TWO_SUITES = {
    "life": Suite("Life of a topic", 4, left_out=(LeftOut(1, "pools"), LeftOut(2, "plans"))),
    "rows": Suite("Rows", 2, added=("types",)),
}


def both(scenario: str) -> list[Outcome]:
    return [Outcome(scenario, name, passed=True) for name in (PEER, OURS)]


def test_a_row_for_each_scenario_and_verdict() -> None:
    outcomes = [
        *both("life/deleted[1]"),
        *both("life/deleted[2]"),
        *both("life/grown_again[x]"),
        *both("life/grown_again[y]"),
        *both("life/grown_again[z]"),
        *both("rows/types"),
        Outcome("rows/types", OURS, passed=False),
        Outcome("rows/types", OURS, passed=True),
        Outcome("rows/headers", OURS, passed=True),
    ]
    lines = render(instances(outcomes, AS_DIFFERENT), TWO_SUITES).splitlines()
    assert lines[:7] == [
        "7 instances of 4 scenarios: 2 same, 2 better, 1 different, 1 **fails**, 1 **not run**.",
        "",
        "| suite | the peer's tests | left out | here | instances | in addition | same | better "
        "| different | **fails** | **not run** |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        "| Life of a topic | 4 | 3 | 1 | 5 | | 2 | 2 | 1 | | |",
        "| Rows | 2 | | 2 | 2 | 1 | | | | 1 | 1 |",
        "| all | 6 | 3 | 3 | 7 | 1 | 2 | 2 | 1 | 1 | 1 |",
    ]
    assert lines[7:12] == [
        "",
        "Left out:",
        "",
        "- Life of a topic, 1: pools",
        "- Life of a topic, 2: plans",
    ]
    assert lines[14:] == [
        "",
        "<details>",
        "<summary>Every scenario, and how the two differ</summary>",
        "",
        "**Life of a topic**",
        "",
        "| scenario | instances | verdict |",
        "|---|---:|---|",
        "| deleted | 2 | better: says which |",
        "| grown again: x | 1 | different: an older format |",
        "| grown again: y; z | 2 | same |",
        "",
        "**Rows**",
        "",
        "| scenario | instances | verdict |",
        "|---|---:|---|",
        "| types | 1 | **fails**: with `pykafka` |",
        "| headers | 1 | **not run** |",
        "",
        "</details>",
    ]


def test_the_scenario_of_a_test() -> None:
    # Do not parametrize this test: the table would take its instances for scenarios.
    for test, scenario, format_name in (
        ("test_watermark[kafka]", "options/watermark", "kafka"),
        ("test_group[pykafka-kafka.group.id]", "options/group[kafka.group.id]", "pykafka"),
        ("test_starts[a-kafka-b]", "options/starts[a-b]", "kafka"),
        ("test_starts[a-pykafka]", "options/starts[a]", "pykafka"),
    ):
        expected = Outcome(scenario, format_name, passed=True)
        assert outcome(f"tests/parity/test_options.py::{test}", passed=True) == expected


def test_a_test_that_is_of_neither_format() -> None:
    assert outcome("tests/parity/test_ranges.py::test_split[kafkas]", passed=True) is None


SCENARIOS = """
import pytest

@pytest.mark.parametrize("name", ["kafka", "pykafka"])
def test_rows(name):
    pass

@pytest.mark.parametrize("name", ["kafka", "pykafka"])
def test_headers(name):
    if name == "pykafka":
        pytest.skip()

@pytest.mark.parametrize("name", ["pykafka"])
def test_offsets(name):
    pass
"""


def test_what_is_skipped_or_left_out_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_batch.py").write_text(SCENARIOS)
    table = tmp_path / "README.md"
    table.write_text(f"{MARKS.begin}\n{MARKS.end}\n")
    command = ["-p", "tests.parity.conftest", "--rootdir", tmp_path, "--parity-table", table]
    ended = pytest_in_a_process(*command, tmp_path, check=False)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout
    assert {
        "| rows | 1 | same |",
        "| headers | 1 | **fails**: with `pykafka` |",
        "| offsets | 1 | **not run** |",
    } <= set(table.read_text().splitlines())


def pytest_in_a_process(*arguments: object, check: bool) -> subprocess.CompletedProcess[str]:
    """Run pytest from the project's directory."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=PROJECT,
        check=check,
        capture_output=True,
        text=True,
        timeout=120,
    )


# -- existing scenarios --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_passed() -> list[Outcome]:
    """Outcomes of all scenarios that pytest collects, with each format, as if all had passed."""
    collected = pytest_in_a_process("--collect-only", "-m", "", "tests/parity", check=True)
    found = (outcome(line, passed=True) for line in collected.stdout.splitlines())
    return [each for each in found if each]


@pytest.fixture(scope="module")
def scenarios(all_passed: list[Outcome]) -> set[str]:
    """Names of the scenarios, with and without parameters."""
    names = {each.scenario for each in all_passed}
    return names | {name.partition("[")[0] for name in names}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_that_of_a_scenario(name: str, scenarios: set[str]) -> None:
    assert name in scenarios
    assert DIFFERENCES[name].verdict in ("better", "different")
    assert DIFFERENCES[name].why.strip()


def test_each_suite_is_counted_and_what_it_adds_is_there(scenarios: set[str]) -> None:
    assert {split_name(name)[0] for name in scenarios} == SUITES.keys()
    for name, suite in SUITES.items():
        assert 0 < suite.here <= suite.tests
        assert scenarios >= {f"{name}/{each}" for each in suite.added}


def test_the_readme_has_exactly_the_scenarios_that_there_are(all_passed: list[Outcome]) -> None:
    _, table, _ = MARKS.split(PROJECT / "docs" / "contributors" / "measured" / "parity.md")
    # A table with a failure must not go into the page either.
    assert table == render(instances(all_passed, DIFFERENCES)), "run `make parity`"
