"""The documentation page with the costs of writing. Each table is between two marks."""

import argparse
import datetime
import os
import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from spark_kafka_source.testing.jars import KAFKA_VERSION
from tools.marks import Marks


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Return the lines of a table."""
    head = list(head)
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def marks(name: str) -> Marks:
    """Return the two lines around a table of the page."""
    return Marks(f"<!-- {name}: written by a program -->", f"<!-- end of {name} -->")


def publish(name: str, command: str, lines: Iterable[str], path: Path | None) -> None:
    """Print the table. Write it into the page, if a path is given."""
    text = "\n".join([_about(command), "", *lines])
    print(text, flush=True)
    if path is not None:
        marks(name).write(path, text)


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the page."""
    parser.add_argument("--page", type=Path, help="write the tables into this page, too")


def _about(command: str) -> str:
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return (
        f"*{today.day} {today:%B %Y}, `python -m {command}`: Kafka {KAFKA_VERSION}, "
        f"confluent-kafka {version('confluent-kafka')}, PySpark {version('pyspark')}, Python "
        f"{platform.python_version()}, pyarrow {version('pyarrow')}, {os.cpu_count()} cores "
        f"({platform.machine()}), load {os.getloadavg()[0]:.1f} at the end.*"
    )
