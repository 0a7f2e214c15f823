"""`python -m tools.fuzz --seconds 60 [target ...]`: run each target in turn, and write a table.

All files are in build/fuzz. `<target>/corpus` grows from run to run. `<target>/findings` has the
inputs that broke a promise. `runs.jsonl` has a line for each run, `table.md` has the sums.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from tools.fuzz.batches import KERNELS_OPTION
from tools.fuzz.targets import TARGETS, Target

_EXECUTED = re.compile(r"stat::number_of_executed_units: *([0-9]+)")
_STARTING_SECONDS = 120
_KERNELS = {
    "written": {KERNELS_OPTION: "written"},
    "compiled": {KERNELS_OPTION: "compiled"},
    # A separate cache: numba does not distinguish the machine code of the two.
    "checked": {KERNELS_OPTION: "compiled", "NUMBA_BOUNDSCHECK": "1"},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one run. `findings` counts kinds of raw errors, `hangs` counts deaths and hangs."""

    target: str
    engine: str
    kernels: str
    seed: int
    seconds: float
    executions: int
    findings: int
    hangs: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan from the command line."""

    engine: str
    kernels: str
    seconds: int
    seed: int
    build: Path


def fuzz(target: Target, plan: Plan) -> Outcome:
    """Run one target for so many seconds, in its own process."""
    folder = plan.build / target.name
    for name in ("corpus", "findings"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (folder / "corpus" / f"seed-{number:03}").write_bytes(data)
    kept = _findings(folder)
    started_seconds = time.monotonic()
    command = ["-m", "tools.fuzz.run", plan.engine, target.name, folder, plan.seconds, plan.seed]
    log = folder / f"{plan.engine}.log"
    kernels = dict(_KERNELS[plan.kernels])
    if plan.kernels == "checked":
        kernels["NUMBA_CACHE_DIR"] = str(plan.build / "numba-checked")
    with log.open("w") as file:
        try:
            ended = subprocess.run(
                [sys.executable, *map(str, command)],
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=plan.seconds + _STARTING_SECONDS,
                env=os.environ | kernels,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = -1
    counted = _EXECUTED.findall(log.read_text(errors="replace"))
    if not counted and ended:
        raise SystemExit(f"{target.name} did not start: see {log}")
    found = _findings(folder) - kept
    hangs = sum("-timeout-" in name or "-crash-" in name or "-oom-" in name for name in found)
    return Outcome(
        target=target.name,
        engine=plan.engine,
        kernels=plan.kernels,
        seed=plan.seed,
        seconds=round(time.monotonic() - started_seconds, 1),
        executions=int(counted[-1]) if counted else 0,
        findings=len(found) - hangs,
        hangs=max(hangs, int(ended != 0)),
    )


def _findings(folder: Path) -> set[str]:
    return {path.name for path in (folder / "findings").iterdir() if "slow-unit" not in path.name}


def table(outcomes: list[Outcome]) -> str:
    """Return the sums by target and engine, in Markdown."""
    sums: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for each in outcomes:
        sums[each.target, each.engine, each.kernels].append(each)
    lines = [
        "| target | engine | kernels | seconds | executions | a second | raw errors | hangs |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for (target, engine, kernels), runs in sorted(sums.items()):
        seconds = sum(each.seconds for each in runs)
        executions = sum(each.executions for each in runs)
        numbers = f"{seconds:,.0f} | {executions:,} | {executions / max(seconds, 1):,.0f}"
        faults = f"{sum(e.findings for e in runs)} | {sum(e.hangs for e in runs)}"
        of_records = kernels if target in _OF_RECORDS else ""
        lines.append(f"| {target} | {engine} | {of_records} | {numbers} | {faults} |")
    total = sum(each.executions for each in outcomes)
    findings, hangs = sum(e.findings for e in outcomes), sum(e.hangs for e in outcomes)
    seconds = sum(each.seconds for each in outcomes)
    lines.append(f"| all | | | {seconds:,.0f} | {total:,} | | {findings} | {hangs} |")
    return "\n".join(lines) + "\n"


_OF_RECORDS = ("batches", "rewritten", "recompressed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument(
        "--engine",
        choices=["guided", "blind"],
        default="guided" if find_spec("atheris") else "blind",
        help="guided by coverage, which takes the extra `fuzz`, or blind, which is faster",
    )
    parser.add_argument(
        "--kernels",
        choices=[*_KERNELS],
        default="compiled" if find_spec("numba") else "written",
        help="which read records beside numpy; checked: compiled, with numba's bounds checks",
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--build", type=Path, default=Path("build/fuzz"))
    given = parser.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    plan = Plan(given.engine, given.kernels, given.seconds, given.seed, given.build)
    given.build.mkdir(parents=True, exist_ok=True)
    runs = given.build / "runs.jsonl"
    faults = 0
    for name in given.targets or TARGETS:
        outcome = fuzz(TARGETS[name], plan)
        faults += outcome.findings + outcome.hangs
        with runs.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
        sys.stdout.write(
            f"{name}: {outcome.executions:,} executions in {outcome.seconds:.0f} s, "
            f"raw errors {outcome.findings}, hangs {outcome.hangs}\n"
        )
        sys.stdout.flush()
    outcomes = [Outcome(**json.loads(line)) for line in runs.read_text().splitlines()]
    text = table(outcomes)
    (given.build / "table.md").write_text(text)
    sys.stdout.write(f"\nAll runs so far, from {runs}:\n\n{text}")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
