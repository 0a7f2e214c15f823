"""All interleavings keep what the protocol promises, and each wrong protocol is found."""

from contextlib import ExitStack

import pytest

from spark_kafka_source.producer.generation import Generation
from tests.exactly_once.explorer.exploring import Explorer, FoundError, Scenario
from tests.exactly_once.explorer.mutants import AB, MUTANTS

pytestmark = pytest.mark.slow

FIRST, SECOND = Generation.FIRST, Generation.SECOND
BOTH = pytest.mark.parametrize("generation", Generation, ids=lambda each: each.name.lower())
FULL = pytest.mark.reliability_full


@BOTH
@pytest.mark.parametrize(
    "faults",
    [
        {"long": 1},
        {"memory": 1, "worker": 1},
        {"swallow": 1, "lost": 1},
        {"lost": 1, "long": 1},
        {"repeated": 2},
        {"death": 1},
        {"taken": 1},
        {"terminated": 1},
        {"aborted": 1},
        {"expired": 1},
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
        {"taken": 1},
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
@pytest.mark.parametrize("faults", [{"long": 1}, {"taken": 1}, {"aborted": 1}], ids="-".join)
def test_tasks_with_two_rows(generation: Generation, faults: dict[str, int]) -> None:
    Explorer(Scenario(generation, runs=1, batches=1, rows=2, faults=faults)).explore()


@BOTH
@pytest.mark.parametrize("writes", [("t",), AB], ids="-".join)
def test_a_checkpoint_that_is_put_back(generation: Generation, writes: tuple[str, ...]) -> None:
    """Other rows under the same number are told, and those that are written stay as they are."""
    faults = {"restored": 1}
    explorer = Explorer(Scenario(generation, 1, batches=2, written=1, writes=writes, faults=faults))
    explorer.explore()
    assert explorer.outcomes["judge: ReplayDiffersError"]


def test_two_runs() -> None:
    Explorer(Scenario(SECOND, runs=2, batches=1)).explore()


@BOTH
@FULL
@pytest.mark.parametrize("written", [0, 1])
def test_a_copy_of_the_checkpoint(generation: Generation, written: int) -> None:
    """Only one of the two queries writes, and the other one is told."""
    explorer = Explorer(
        Scenario(generation, runs=1, copies=1, batches=written + 1, written=written)
    )
    explorer.explore()
    assert explorer.outcomes["PrefixInUseError"]


@FULL
@pytest.mark.parametrize(
    ("generation", "faults"), [(FIRST, {}), (FIRST, {"repeated": 1}), (SECOND, {"repeated": 1})]
)
def test_two_runs_and_more(generation: Generation, faults: dict[str, int]) -> None:
    Explorer(Scenario(generation, runs=2, batches=1, faults=faults)).explore()


@BOTH
@FULL
@pytest.mark.parametrize(
    "faults",
    [
        {"death": 1, "long": 1},
        {"death": 2, "memory": 1},
        {"death": 1, "lost": 1},
        {"death": 1, "aborted": 1},
        {"taken": 1, "lost": 1},
        {"terminated": 1, "long": 1},
        {"aborted": 1, "expired": 1},
        {"aborted": 1, "swallow": 1, "lost": 1},
    ],
    ids="-".join,
)
def test_one_run_with_several_faults(generation: Generation, faults: dict[str, int]) -> None:
    scenario = Scenario(generation, runs=1, batches=2, faults=faults, most_states=300_000)
    Explorer(scenario).explore()


@BOTH
@FULL
@pytest.mark.parametrize("fault", ["death", "lost", "restored"])
def test_two_runs_after_a_decision(generation: Generation, fault: str) -> None:
    """Not all states."""
    scenario = Scenario(
        generation, runs=2, batches=2, written=1, faults={fault: 1}, most_states=200_000
    )
    Explorer(scenario).explore()


@BOTH
@FULL
@pytest.mark.parametrize("fault", ["long", "taken", "terminated", "aborted", "expired"])
def test_two_runs_and_what_others_do(generation: Generation, fault: str) -> None:
    """Not all states: with a long time there are more than a million."""
    scenario = Scenario(generation, runs=2, batches=1, faults={fault: 1}, most_states=150_000)
    Explorer(scenario).explore()


@BOTH
@FULL
@pytest.mark.parametrize("timeout_bumps", [1, 2])
def test_errors_that_code_swallows(generation: Generation, timeout_bumps: int) -> None:
    faults = {"swallow": 1, "lost": 1, "long": 1, "memory": 1}
    scenario = Scenario(generation, runs=1, batches=3, faults=faults, timeout_bumps=timeout_bumps)
    Explorer(scenario).explore()


@BOTH
@FULL
def test_two_runs_with_two_writes(generation: Generation) -> None:
    Explorer(Scenario(generation, runs=2, batches=1, writes=AB)).explore()


@BOTH
def test_an_abort_in_one_partition_before_the_commit_is_the_limit(generation: Generation) -> None:
    """Coordinators know nothing of it, and the driver asks no leader: the loss is silent."""
    with pytest.raises(FoundError, match="rows are missing"):
        Explorer(Scenario(generation, runs=1, batches=1, faults={"broken": 1})).explore()


def _how_long(scenario: Scenario) -> pytest.MarkDecorator:
    if scenario.runs == 1:
        return pytest.mark.slow
    return FULL if scenario.written else pytest.mark.long


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
