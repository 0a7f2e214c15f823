"""Table of `make parity`: each scenario with each format, for the page on parity."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.parity.differences import Difference
from tests.parity.scenario import OURS, PEER
from tests.parity.suites import NOT_COUNTED, SUITES, Suite
from tools.marks import Marks

MARKS = Marks("<!-- parity: written by make parity -->", "<!-- end of parity -->")

FAILS = "**fails**"
NOT_RUN = "**not run**"
_VERDICTS = ("same", "better", "different", FAILS, NOT_RUN)
# The first parameter that is exactly a format.
_FORMAT = re.compile(rf"(\[|-)({PEER}|{OURS})(-|\])")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a scenario's instance with a format. `scenario` is `suite/name[parameters]`."""

    scenario: str
    format_name: str
    passed: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of both formats on an instance. `why` names the difference or the failure."""

    word: str
    why: str = ""

    def __str__(self) -> str:
        return self.word + (self.why and f": {self.why}")


@dataclass(frozen=True, slots=True)
class Instance:
    """A scenario with one set of parameters; `""` if it has none."""

    suite: str
    scenario: str
    parameters: str
    verdict: Verdict


def instances(outcomes: Iterable[Outcome], differences: Mapping[str, Difference]) -> list[Instance]:
    """Return one instance for each scenario and its parameters. One failed outcome fails it."""
    passed: dict[str, dict[str, bool]] = defaultdict(dict)
    for each in outcomes:
        formats = passed[each.scenario]
        formats[each.format_name] = formats.get(each.format_name, True) and each.passed
    found = []
    for name, by_format in passed.items():
        suite, scenario, parameters = split_name(name)
        verdict = _verdict(by_format, difference_of(name, differences))
        found.append(Instance(suite, scenario, parameters, verdict))
    return found


def outcome(node_id: str, *, passed: bool) -> Outcome | None:
    """Return the outcome of the test with this node id; None if the test has no format."""
    path, _, test = node_id.partition("::")
    match = _FORMAT.search(test)
    if match is None:
        return None
    before, format_name, after = match.groups()
    between = {"[]": "", "[-": "[", "-]": "]", "--": "-"}[before + after]
    scenario = test[: match.start()] + between + test[match.end() :]
    name = f"{Path(path).stem.removeprefix('test_')}/{scenario.removeprefix('test_')}"
    return Outcome(name, format_name, passed)


def split_name(name: str) -> tuple[str, str, str]:
    """Return suite, scenario and parameters of `suite/name[parameters]`."""
    suite, _, rest = name.partition("/")
    scenario, _, parameters = rest.partition("[")
    return suite, scenario, parameters.removesuffix("]")


def difference_of(name: str, differences: Mapping[str, Difference]) -> Difference | None:
    """Return the difference of the instance, or else of its scenario."""
    return differences.get(name) or differences.get(name.partition("[")[0])


def render(found: Sequence[Instance], suites: Mapping[str, Suite] = SUITES) -> str:
    """Return Markdown: a row for each suite, and folded rows for each scenario and verdict."""
    total = Counter(each.verdict.word for each in found)
    of_suites = {name: [each for each in found if each.suite == name] for name in suites}
    scenarios = {(each.suite, each.scenario) for each in found}
    counted = ", ".join(f"{total[word]} {word}" for word in _words(found))
    return "\n".join(
        [
            f"{len(found)} instances of {len(scenarios)} scenarios: {counted}.",
            "",
            *_totals(of_suites, suites),
            "",
            NOT_COUNTED,
            "",
            "<details>",
            "<summary>Every scenario, and how the two differ</summary>",
            *(
                line
                for name, of_suite in of_suites.items()
                for line in _scenarios(suites[name].title, of_suite)
            ),
            "",
            "</details>",
        ]
    )


def _verdict(passed: Mapping[str, bool], difference: Difference | None) -> Verdict:
    failed = [name for name in (PEER, OURS) if not passed.get(name, True)]
    if failed:
        return Verdict(FAILS, "with " + " and ".join(f"`{name}`" for name in failed))
    if len(passed) < len((PEER, OURS)):
        return Verdict(NOT_RUN)
    return Verdict(difference.verdict, difference.why) if difference else Verdict("same")


def _words(found: Iterable[Instance]) -> list[str]:
    """Return the occurring verdicts, in their order."""
    there = {each.verdict.word for each in found}
    return [word for word in _VERDICTS if word in there]


def _totals(
    of_suites: Mapping[str, Sequence[Instance]], suites: Mapping[str, Suite]
) -> Iterable[str]:
    words = _words(each for of_suite in of_suites.values() for each in of_suite)
    head = ["suite", "the peer's tests", "left out", "here", "instances", "in addition", *words]
    numbers = {
        name: [suite.tests, suite.tests - suite.here, suite.here, *counts]
        for name, suite in suites.items()
        for counts in [_counts(of_suites[name], suite, words)]
    }
    yield _row(head)
    yield "|---|" + "---:|" * (len(head) - 1)
    for name, suite in suites.items():
        yield _row([suite.title, *numbers[name]])
    yield _row(["all", *map(sum, zip(*numbers.values(), strict=True))])
    yield from ("", "Left out:", "")
    for suite in suites.values():
        for each in suite.left_out:
            yield f"- {suite.title}, {each.tests}: {each.what}"


def _counts(found: Sequence[Instance], suite: Suite, words: Iterable[str]) -> list[int]:
    """Return the number of all instances, of the added instances, and of each verdict."""
    added = sum(suite.has_added(each.scenario, each.parameters) for each in found)
    counted = Counter(each.verdict.word for each in found)
    return [len(found), added, *(counted[word] for word in words)]


def _scenarios(title: str, found: Sequence[Instance]) -> Iterable[str]:
    """Yield a row for each scenario, or one for each verdict if its instances differ."""
    by_scenario: dict[str, dict[Verdict, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        by_scenario[each.scenario][each.verdict].append(each.parameters)
    yield from ("", f"**{title}**", "", "| scenario | instances | verdict |", "|---|---:|---|")
    for scenario, by_verdict in by_scenario.items():
        for verdict, parameters in by_verdict.items():
            which = f": {'; '.join(parameters)}" if len(by_verdict) > 1 else ""
            yield _row([scenario.replace("_", " ") + which, len(parameters), verdict])


def _row(cells: Iterable[object]) -> str:
    """Return a row of Markdown. A 0 gives an empty cell."""
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)
