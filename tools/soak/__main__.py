"""A long run, its outcome and its page: see the package's docstring.

    python -m tools.soak [--hours H] [--seed S] [--page PATH] [--picture PATH] [--outcomes PATH]
        [--rows-a-second N] [--directory PATH]

A file keeps a line for the outcome of each run. The page adds up all lines, so that the hours can
be on several days. `--directory` keeps the files of the run. The exit status is 1 if there was an
anomaly, if a process grew or ended by itself, or if a run of an hour cannot tell whether one grew.
"""

import argparse
import datetime
import os
import platform
import random
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from spark_kafka_source.testing.jars import KAFKA_VERSION
from tools.marks import Marks
from tools.soak import samples
from tools.soak.cast import ENDED
from tools.soak.outcome import Outcome, keep, kept
from tools.soak.page import render
from tools.soak.picture import draw
from tools.soak.run import SAMPLES, soak

MARKS = Marks("<!-- soak: written by a program -->", "<!-- end of soak -->")
_OUTCOMES = Path(__file__).with_name("outcomes.jsonl")


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        directory = given.directory or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        outcome = soak(given.hours, given.seed, directory, given.rows_a_second)
        keep(outcome, given.outcomes)
        if given.picture:
            draw(samples.read(directory / SAMPLES), given.picture)
    text = _text(kept(given.outcomes))
    print(text)
    if given.page:
        MARKS.write(given.page, text)
    bad = outcome.anomalies or outcome.grown or outcome.unjudged or ENDED in outcome.nemesis
    sys.exit(bool(bad))


def _text(outcomes: list[Outcome]) -> str:
    today = datetime.date.today()
    about = (
        f"{today.day} {today:%B %Y}: spark_kafka_source {version('spark-kafka-source')}, PySpark "
        f"{version('pyspark')}, three brokers of Kafka {KAFKA_VERSION}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores; the judge is confluent-kafka "
        f"{version('confluent-kafka')}. Written by `make soak`."
    )
    return f"{about}\n\n{render(outcomes)}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--rows-a-second", type=int, default=200)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--outcomes", type=Path, default=_OUTCOMES)
    return parser.parse_args()


if __name__ == "__main__":
    main()
