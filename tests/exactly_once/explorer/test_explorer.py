"""All interleavings keep what the protocol promises, and each wrong protocol is found."""

from contextlib import ExitStack

import pytest

from spark_kafka_source.producer.generation import Generation
from tests.exactly_once.explorer.exploring import Explorer, FoundError, Scenario
from tests.exactly_once.explorer.mutants import AB, MUTANTS

pytestmark = pytest.mark.slow

FIRST, SECOND = Generation.FIRST, Generation.SECOND
BOTH = pytest.mark.parametrize("generation", Generation, ids=lambda each: each.name.lower())


@BOTH
@pytest.mark.parametrize(
    "faults",
    [
        {"long": 1},
        {"memory": 1, "worker": 1},
        {"swallow": 1, "lost": 1},
        {"lost": 1, "long": 1},
        {"repeated": 2},
    ],
    ids="-".join,
)
def test_one_run_with_two_micro_batches(generation: Generation, faults: dict[str, int]) -> None:
    Explorer(Scenario(generation, runs=1, batches=2, faults=faults)).explore()


@BOTH
@pytest.mark.parametrize(
    "faults",
    [
        {"long": 1},
        {"memory": 1, "worker": 1},
        {"swallow": 1, "lost": 2},
        {"lost": 1, "long": 1},
        {"turn": 1, "lost": 1},
    ],
    ids="-".join,
)
def test_two_writes(generation: Generation, faults: dict[str, int]) -> None:
    """The next run has them in the other order."""
    Explorer(Scenario(generation, runs=1, batches=1, writes=AB, faults=faults)).explore()


@BOTH
def test_two_processes_of_a_driver_by_turns(generation: Generation) -> None:
    """They do not take each other for the driver of another run."""
    Explorer(Scenario(generation, runs=1, batches=2, writes=AB, faults={"turn": 2})).explore()


@BOTH
def test_tasks_with_two_rows(generation: Generation) -> None:
    Explorer(Scenario(generation, runs=1, batches=1, rows=2, faults={"long": 1})).explore()


def test_two_runs() -> None:
    Explorer(Scenario(SECOND, runs=2, batches=1)).explore()


@pytest.mark.reliability_full
@pytest.mark.parametrize(
    ("generation", "faults"), [(FIRST, {}), (FIRST, {"repeated": 1}), (SECOND, {"repeated": 1})]
)
def test_two_runs_and_more(generation: Generation, faults: dict[str, int]) -> None:
    Explorer(Scenario(generation, runs=2, batches=1, faults=faults)).explore()


def test_a_process_that_dies_and_one_that_goes_on_with_its_ids() -> None:
    """The second one is of the same run, or of the next one."""
    Explorer(Scenario(SECOND, runs=1, batches=2, faults={"death": 1})).explore()


@BOTH
@pytest.mark.reliability_full
@pytest.mark.parametrize(
    "faults", [{"death": 1, "long": 1}, {"death": 2, "memory": 1}, {"death": 1, "lost": 1}]
)
def test_a_process_that_dies_and_other_faults(
    generation: Generation, faults: dict[str, int]
) -> None:
    scenario = Scenario(generation, runs=1, batches=2, faults=faults, most_states=300_000)
    Explorer(scenario).explore()


@BOTH
@pytest.mark.reliability_full
@pytest.mark.parametrize("faults", [{"death": 1}, {"lost": 1}])
def test_two_runs_after_a_decision(generation: Generation, faults: dict[str, int]) -> None:
    """Aborts leave their marks, and processes inherit from another run. Not all states."""
    scenario = Scenario(
        generation, runs=2, batches=2, written=1, faults=faults, most_states=300_000
    )
    Explorer(scenario).explore()


def _how_long(scenario: Scenario) -> pytest.MarkDecorator:
    if scenario.written or scenario.batches > 2:
        return pytest.mark.reliability_full
    return pytest.mark.long if scenario.runs > 1 else pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=_how_long(mutant.scenario)) for each, mutant in MUTANTS.items()],
)
def test_a_wrong_protocol_is_found(name: str) -> None:
    mutant = MUTANTS[name]
    with ExitStack() as stack:
        for each in mutant.patches:
            stack.enter_context(each)
        with pytest.raises(FoundError):
            Explorer(mutant.scenario, **mutant.parts).explore()


@BOTH
@pytest.mark.reliability_full
@pytest.mark.parametrize("timeout_bumps", [1, 2])
def test_errors_that_code_swallows(generation: Generation, timeout_bumps: int) -> None:
    faults = {"swallow": 1, "lost": 1, "long": 1, "memory": 1}
    scenario = Scenario(generation, runs=1, batches=3, faults=faults, timeout_bumps=timeout_bumps)
    Explorer(scenario).explore()


@BOTH
@pytest.mark.reliability_full
def test_two_runs_with_two_writes(generation: Generation) -> None:
    Explorer(Scenario(generation, runs=2, batches=1, writes=AB)).explore()


@BOTH
@pytest.mark.reliability_full
def test_two_runs_and_a_long_time(generation: Generation) -> None:
    """Not all states: there are more than a million."""
    faults = {"long": 1}
    scenario = Scenario(generation, runs=2, batches=1, faults=faults, most_states=900_000)
    Explorer(scenario).explore()


@pytest.mark.reliability_full
def test_rows_that_arrive_after_half_of_the_timeout_are_the_limit() -> None:
    """A worker that stands still between its look at the clock and its first row hides a loss."""
    faults = {"swallow": 1, "lost": 1, "long": 1}
    with pytest.raises(FoundError, match="rows are missing"):
        Explorer(Scenario(SECOND, runs=1, batches=3, faults=faults)).explore()
