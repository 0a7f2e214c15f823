"""`python -m tests.reliability.sink --rounds 50 --page docs/exactly-once-faults-spark.md`."""

import argparse
import random
import tempfile
import time
from pathlib import Path

from spark_kafka_source.testing import LocalKafka
from tests.reliability.sink.page import Row, render
from tests.reliability.sink.scenarios import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    PEER,
    SCENARIOS,
    Copying,
    run_scenario,
)

_GUARANTEES = (EXACTLY_ONCE, AT_LEAST_ONCE, PEER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--guarantee", action="append", choices=_GUARANTEES)
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    parser.add_argument("--minutes", type=float, help="no scenario is begun after so long")
    parser.add_argument("--page", type=Path, help="where to write the table")
    given = parser.parse_args()
    started_seconds = time.monotonic()
    rows: list[Row] = []
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as directory:
        for guarantee in given.guarantee or _GUARANTEES:
            for name in given.scenario or SCENARIOS:
                if given.minutes and time.monotonic() - started_seconds > 60 * given.minutes:
                    continue
                chance = random.Random(f"{given.seed} {name} {guarantee}")
                copying = Copying(kafka, Path(directory), chance, guarantee)
                verdict = run_scenario(copying, name, given.rounds)
                row = Row(
                    guarantee, name, copying.rounds, copying.faults, len(copying.rows), verdict
                )
                rows.append(row)
                print(f"{time.monotonic() - started_seconds:6.0f} s", *rows[-1].cells, copying.ends)
                if given.page:
                    given.page.write_text(render(rows, given.seed))


if __name__ == "__main__":
    main()
