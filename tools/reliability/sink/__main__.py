"""Every fault in turn, and the table: see the package's docstring.

    python -m tools.reliability.sink [--rounds N] [--others N] [--page PATH] [--outcomes PATH]
        [--minutes M] [--scenario NAME]

`--rounds` is for queries that write exactly once, `--others` for the two other sinks. A file keeps
a line for the outcome of some rounds. The table is over all lines, so that the rounds can go on
another day. After `--minutes` no more rounds begin.
"""

import argparse
import datetime
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from importlib.metadata import version
from pathlib import Path

from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.jars import KAFKA_VERSION
from tools.marks import Marks
from tools.reliability.sink.judge import Verdict
from tools.reliability.sink.scenarios import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    PEER,
    SCENARIOS,
    Copying,
    run_scenario,
)
from tools.reliability.sink.table import Found, Outcome, added, render

MARKS = Marks("<!-- faults: written by a program -->", "<!-- end of faults -->")
_OUTCOMES = Path(__file__).with_name("outcomes.jsonl")
# Rounds on one checkpoint. Then the query goes on to its end, and the copy is judged.
_ROUNDS_AT_ONCE = 5


def main() -> None:
    given = _arguments()
    found = _kept(given.outcomes)
    wanted = {EXACTLY_ONCE: given.rounds, AT_LEAST_ONCE: given.others, PEER: given.others}
    until_seconds = time.monotonic() + 60 * given.minutes
    with LocalKafka(3) as kafka:
        for guarantee, name, rounds in _missing(found, wanted, given.scenario or list(SCENARIOS)):
            if time.monotonic() > until_seconds:
                break
            outcome = _make(kafka, guarantee, name, rounds)
            found[guarantee, name] = added(found[guarantee, name], outcome)
            print(guarantee, name, outcome, sep="; ", flush=True)
            with given.outcomes.open("a") as file:
                file.write(f"{json.dumps((guarantee, name, *_row(outcome)))}\n")
            if given.page:
                MARKS.write(given.page, _text(found))
    print(_text(found))


def _make(kafka: LocalKafka, guarantee: str, name: str, rounds: int) -> Outcome:
    with tempfile.TemporaryDirectory() as directory:
        copying = Copying(kafka, Path(directory), random.Random(), guarantee)
        verdict = run_scenario(copying, name, rounds)
    return Outcome(copying.rounds, copying.faults, len(copying.rows), verdict)


def _missing(
    found: Mapping[tuple[str, str], Outcome], wanted: Mapping[str, int], names: list[str]
) -> Iterator[tuple[str, str, int]]:
    """Yield the rounds to make, in an order that keeps all faults at about the same number."""
    for least in range(0, max(wanted.values()), _ROUNDS_AT_ONCE):
        for guarantee, rounds in wanted.items():
            for name in names:
                made = found[guarantee, name].rounds
                if made <= least and made < rounds:
                    yield guarantee, name, min(_ROUNDS_AT_ONCE, rounds - made)


def _kept(path: Path) -> Found:
    """Return the outcomes of earlier rounds."""
    found = {
        (guarantee, name): Outcome()
        for name in SCENARIOS
        for guarantee in (EXACTLY_ONCE, AT_LEAST_ONCE, PEER)
    }
    for line in path.read_text().splitlines() if path.exists() else ():
        guarantee, name, rounds, faults, rows, *verdict = json.loads(line)
        outcome = Outcome(rounds, faults, rows, Verdict(*verdict))
        found[guarantee, name] = added(found[guarantee, name], outcome)
    return found


def _row(outcome: Outcome) -> tuple[int, ...]:
    return outcome.rounds, outcome.faults, outcome.rows, *astuple(outcome.verdict)


def _text(found: Found) -> str:
    today = datetime.date.today()
    about = (
        f"{today.day} {today:%B %Y}: spark_kafka_source {version('spark-kafka-source')}, PySpark "
        f"{version('pyspark')}, three brokers of Kafka {KAFKA_VERSION}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores; the judge is confluent-kafka "
        f"{version('confluent-kafka')}. Written by `python -m tools.reliability.sink --page "
        "docs/contributors/measured/exactly-once-faults-spark.md`."
    )
    return f"{about}\n\n{render(found)}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--others", type=int, default=0)
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--outcomes", type=Path, default=_OUTCOMES)
    return parser.parse_args()


if __name__ == "__main__":
    main()
