"""Every fault at every step in turn, and the table: see the package's docstring.

    python -m tools.reliability.deciding [--rounds N] [--generation 1|2] [--only PATTERN]
        [--page PATH] [--outcomes PATH]

A round has one fault for each broker's role and each manner, at a step of the commit. The next
round has the next step. `--only` makes the faults whose names match the pattern. A file keeps a
line for each outcome. The table is over all lines, so that the rounds can go on another day. Each
generation of transactions (`transaction.version`) has a file and a table of its own.
"""

import argparse
import datetime
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from random import Random

from spark_kafka_source.testing.jars import KAFKA_VERSION
from tests.exactly_once.judge import Verdict
from tests.exactly_once.steps import Step
from tools.marks import Marks
from tools.reliability.deciding.faults import Fault, Manner, Outcome, Role, Trials
from tools.reliability.deciding.table import render
from tools.reliability.writing.cluster import three_brokers

OUTCOMES = {each: Path(__file__).with_name(f"generation-{each}.jsonl") for each in (1, 2)}
MARKS = {
    each: Marks(
        f"<!-- generation {each}: written by a program -->", f"<!-- end of generation {each} -->"
    )
    for each in OUTCOMES
}


def main() -> None:
    arguments = _arguments()
    generation = arguments.generation
    outcomes_path = arguments.outcomes or OUTCOMES[generation]
    outcomes_path.parent.mkdir(parents=True, exist_ok=True)
    found = _kept(outcomes_path)
    steps = list(Step)
    with three_brokers(Random()) as cluster:
        level = f"transaction.version={generation}"
        if generation == 1:
            cluster.kafka.tool("features", "downgrade", "--feature", level)
        trials = Trials(cluster.kafka, "rows", cluster.gates)
        for made in range(arguments.rounds):
            for (role, manner), outcomes in found.items():
                fault = Fault(role, manner, steps[len(outcomes) % len(steps)])
                if re.search(arguments.only, str(fault)) and len(outcomes) == made:
                    outcomes.append(trials.make(fault))
                    print(fault, outcomes[-1], sep="; ", flush=True)
                    _keep(outcomes_path, fault, outcomes[-1])
            if arguments.page:
                MARKS[generation].write(arguments.page, _text(found, generation))
    print(_text(found, generation))


def _kept(path: Path) -> dict[tuple[Role, Manner], list[Outcome]]:
    """Return the outcomes of earlier faults."""
    found: dict[tuple[Role, Manner], list[Outcome]] = {
        (role, manner): [] for role in Role for manner in Manner
    }
    for line in path.read_text().splitlines() if path.exists() else ():
        role, manner, _, commit, runs, *verdict = json.loads(line)
        found[Role[role], Manner[manner]].append(Outcome(commit, runs, Verdict(*verdict)))
    return found


def _keep(path: Path, fault: Fault, outcome: Outcome) -> None:
    verdict = outcome.verdict
    row = (
        *(fault.role.name, fault.manner.name, fault.step.name, outcome.commit, outcome.runs),
        *(verdict.lost, verdict.doubled, verdict.held_up),
    )
    with path.open("a") as file:
        file.write(f"{json.dumps(row)}\n")


def _text(found: Mapping[tuple[Role, Manner], Sequence[Outcome]], generation: int) -> str:
    today = datetime.date.today()
    about = (
        f"Each fault at the next of {len(Step)} steps in turn, {today.day} {today:%B %Y}: "
        f"spark_kafka_source {version('spark-kafka-source')}, three brokers of Kafka "
        f"{KAFKA_VERSION} with `transaction.version` {generation}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores; the judge is confluent-kafka "
        f"{version('confluent-kafka')}. Written by `python -m tools.reliability.deciding "
        f"--generation {generation} --page docs/contributors/measured/exactly-once-faults.md`."
    )
    return f"{about}\n\n{render(found)}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--generation", type=int, choices=OUTCOMES, default=2)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--outcomes", type=Path, help="by default a file of the generation")
    return parser.parse_args()


if __name__ == "__main__":
    main()
