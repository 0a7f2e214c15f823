"""Every fault, with idempotence and without, some rounds of each, and the table.

    python -m tools.reliability.writing [--rounds N] [--only WORD] [--seed S] [--page PATH]

`--page` also writes the table into a page. `--only` makes the faults with the word in their names.
"""

import argparse
import datetime
import os
import platform
import random
from collections import defaultdict
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from spark_kafka_source.testing.jars import KAFKA_VERSION
from tools.marks import Marks
from tools.reliability.writing.cluster import three_brokers
from tools.reliability.writing.faults import FAULTS
from tools.reliability.writing.rounds import Outcome, run_round

MARKS = Marks("<!-- faults while writing: by a program -->", "<!-- end of faults while writing -->")

_HEAD = (
    *("fault", "idempotence", "rounds", "faults", "records acknowledged"),
    *("lost", "doubled", "out of order", "elsewhere than said", "failed"),
)


def main() -> None:
    arguments = _arguments()
    found: dict[tuple[str, bool], Outcome] = defaultdict(Outcome)
    with three_brokers(random.Random(arguments.seed)) as cluster:
        for number in range(arguments.rounds):
            for fault in [each for each in FAULTS if arguments.only in each]:
                for idempotent in (True, False):
                    outcome = run_round(cluster, fault, idempotent=idempotent)
                    print(number, fault, idempotent, outcome, sep="; ", flush=True)
                    found[fault, idempotent] += outcome
            text = "\n\n".join([_about(arguments), render(found)])
            if arguments.page:  # After each round, so that an interrupted run has its table.
                MARKS.write(arguments.page, text)
    print(text)


def render(found: Mapping[tuple[str, bool], Outcome]) -> str:
    """Return a table with a row for each fault, with idempotence and without."""
    lines = [_row(*_HEAD), _row(*("---" for _ in _HEAD))]
    for (fault, idempotent), outcome in found.items():
        verdict = outcome.verdict
        counts = (
            *(outcome.rounds, outcome.faults, verdict.acknowledged),
            *(verdict.lost, verdict.doubled, verdict.out_of_order),
            *(verdict.misplaced, verdict.failed),
        )
        cells = [f"{each:,}" for each in counts]
        lines.append(_row(fault, "on" if idempotent else "off", *cells))
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _about(arguments: argparse.Namespace) -> str:
    today = datetime.date.today()
    return (
        f"{today.day} {today:%B %Y}, seed {arguments.seed}: spark_kafka_source "
        f"{version('spark-kafka-source')}, Kafka {KAFKA_VERSION}, confluent-kafka "
        f"{version('confluent-kafka')} as the reader, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores. Written by `python -m tools.reliability.writing --rounds "
        f"{arguments.rounds} --page docs/contributors/measured/writing-faults.md`."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
