"""Every fault at every step in turn, and the table: see the package's docstring.

    python -m tests.reliability.deciding [--rounds N] [--only WORD] [--minutes N] [--page PATH]

A round is one fault for each broker's part and each manner, at a step of the commit; the next round
has the next step. `--only` makes the faults in whose names the word is.
"""

import argparse
import datetime
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

from spark_kafka_source.exactly_once.two_phase import Step
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.jars import KAFKA_VERSION
from tests.marks import Marks
from tests.reliability.deciding.faults import Fault, Manner, Outcome, Role, Trials
from tests.reliability.deciding.table import render

MARKS = Marks("<!-- faults: written by a program -->", "<!-- end of faults -->")


def main() -> None:
    arguments = _arguments()
    found: dict[tuple[Role, Manner], list[Outcome]] = {
        (role, manner): [] for role in Role for manner in Manner
    }
    started_seconds = time.monotonic()
    steps = list(Step)
    rounds = 0
    with LocalKafka(3) as kafka:
        trials = Trials(kafka, "rows")
        while rounds < arguments.rounds and _has_time(started_seconds, arguments.minutes):
            for (role, manner), outcomes in found.items():
                fault = Fault(role, manner, steps[rounds % len(steps)])
                if arguments.only in str(fault):
                    outcomes.append(trials.make(fault))
                    print(fault, outcomes[-1], sep="; ", flush=True)
            rounds += 1
            text = "\n\n".join([_about(rounds), render(found)])
            if arguments.page:
                MARKS.write(arguments.page, text)
    print(text)


def _has_time(started_seconds: float, minutes: float | None) -> bool:
    return minutes is None or time.monotonic() - started_seconds < 60 * minutes


def _about(rounds: int) -> str:
    today = datetime.date.today()
    return (
        f"{rounds} rounds, each at the next of {len(Step)} steps, {today.day} {today:%B %Y}: "
        f"spark_kafka_source {version('spark-kafka-source')}, three brokers of Kafka "
        f"{KAFKA_VERSION}, Python {platform.python_version()}, {os.cpu_count()} cores; the judge "
        f"is confluent-kafka {version('confluent-kafka')}. Written by `python -m "
        "tests.reliability.deciding --page docs/exactly-once-faults.md`."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--minutes", type=float, help="no round is begun after so long")
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
