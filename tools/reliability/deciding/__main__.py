"""Rounds of drawn faults, and the table: see the package's docstring.

    python -m tools.reliability.deciding [--rounds N] [--generation 1|2] [--seed SEED]
        [--page PATH] [--outcomes PATH]

The seed of each round is the next number. `--seed` makes one round again, and keeps nothing. A file
keeps a line for each outcome. The table is over all lines, so that the rounds can go on another
day. Each generation of transactions (`transaction.version`) has a file and a table of its own.
"""

import argparse
import datetime
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from spark_kafka_source.testing.jars import KAFKA_VERSION
from tools.marks import Marks
from tools.reliability.deciding.faults import Outcome, brokers, drawn, make
from tools.reliability.deciding.table import render

OUTCOMES = {each: Path(__file__).with_name(f"generation-{each}.jsonl") for each in (1, 2)}
MARKS = {
    each: Marks(
        f"<!-- generation {each}: written by a program -->", f"<!-- end of generation {each} -->"
    )
    for each in OUTCOMES
}


def main() -> None:
    arguments = _arguments()
    generation, again = arguments.generation, arguments.seed
    path = arguments.outcomes or OUTCOMES[generation]
    lines = path.read_text().splitlines() if path.exists() else ()
    found = [Outcome(**json.loads(line)) for line in lines]
    seeds = range(len(found), len(found) + arguments.rounds) if again is None else [again]
    with brokers() as (kafka, gates):
        if generation == 1:
            level = f"transaction.version={generation}"
            kafka.tool("features", "downgrade", "--feature", level)
        for seed in seeds:
            print(seed, *drawn(seed), sep="\n    ", flush=True)
            outcome = make(kafka, gates, seed, drawn(seed))
            print(f"    {outcome}", flush=True)
            if again is None:
                found.append(outcome)
                with path.open("a") as file:
                    file.write(f"{json.dumps(asdict(outcome))}\n")
            if arguments.page:
                MARKS[generation].write(arguments.page, _text(found, generation))
    print(_text(found, generation))


def _text(found: Sequence[Outcome], generation: int) -> str:
    today = datetime.date.today()
    about = (
        f"Drawn rounds, {today.day} {today:%B %Y}: "
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
    parser.add_argument("--seed", type=int)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--outcomes", type=Path, help="by default a file of the generation")
    return parser.parse_args()


if __name__ == "__main__":
    main()
