"""Running the blocks of a page on a real broker, with the test's own names and addresses."""

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_kafka_source.command_line.main import main
from tests.documentation.pages import DOCS, Block

FORMATS_IN_DETAIL = DOCS / "contributors" / "formats-in-detail.md"
ELSEWHERE: Mapping[tuple[Path, str], str] = {
    (DOCS / "writing.md", "python"): "tests/spark/sink/test_documentation.py",
    (DOCS / "producer.md", "python"): "tests/producer/test_documentation.py",
    (DOCS / "monitoring.md", "python"): "tests/documentation/test_monitoring.py",
    (FORMATS_IN_DETAIL, ""): "tests/typed/test_documentation.py",
}
"""Blocks that other tests run, by page and language, with the file of the test."""

NAMES = ("events", "orders", "invoices", "clicks", "counts", "dead-letters", "billing", "consumers")
"""Topics and groups of the pages. Each page gets its own."""

_OUR_COMMAND, _MODULE = "spark-kafka-source ", "python -m "


def runs_elsewhere(block: Block) -> bool:
    """Return whether another test runs a block."""
    return (block.page, block.language) in ELSEWHERE


def can_run(block: Block) -> bool:
    """Return whether `Runner` can run a block."""
    if block.language == "python":
        return True
    return all(each.startswith((_OUR_COMMAND, _MODULE)) for each in _commands(block))


class Runner:
    """Runner of the blocks of one page, one after the other, with one set of variables."""

    def __init__(
        self, spark: SparkSession, suffix: str, texts: Mapping[str, str], **variables: Any
    ) -> None:
        """Replace the texts in each block; `suffix` makes `NAMES` those of this page."""
        self._spark, self._suffix, self._texts = spark, suffix, dict(texts)
        self._variables = {"__name__": "__main__", "spark": spark, **variables}

    def replace(self, texts: Mapping[str, str]) -> None:
        """Replace these texts, too."""
        self._texts |= texts

    def name(self, name: str) -> str:
        """Return the page's own name for a topic or a group."""
        return f"{name}-{self._suffix}"

    def set(self, **variables: Any) -> None:
        """Set variables that a block assumes."""
        self._variables |= variables

    def variable(self, name: str) -> Any:
        """Return a variable that a block has set."""
        return self._variables[name]

    def run(self, block: Block) -> None:
        """Run a block, and wait until its streams have read all records."""
        self.execute(block)
        for query in self._spark.streams.active:
            for _ in range(2):  # A micro-batch is committed to its group by the next trigger.
                query.processAllAvailable()

    def execute(self, block: Block) -> None:
        """Run a block, and wait for no stream."""
        if block.language == "python":
            exec(compile(self.source(block), str(block), "exec"), self._variables)  # our own page
        else:
            for command in _commands(block):
                _run_command(self._own(command, r"(?<= )", r"(?= |$)"))

    def source(self, block: Block) -> str:
        """Return the text of a block of Python, with the test's own names."""
        return self._own(block.source, '"', '"')

    def _own(self, text: str, before: str, after: str) -> str:
        for found, put in self._texts.items():
            text = text.replace(found, put)
        names = "|".join(map(re.escape, NAMES))
        return re.sub(
            f"({before})({names})({after})",
            lambda match: f"{match[1]}{self.name(match[2])}{match[3]}",
            text,
        )


def _commands(block: Block) -> list[str]:
    return [line for line in block.source.splitlines() if line.strip()]


def _run_command(command: str) -> None:
    if command.startswith(_OUR_COMMAND):
        assert main(shlex.split(command, comments=True)[1:]) == 0, command
    else:
        arguments = shlex.split(command, comments=True)[1:]
        subprocess.run([sys.executable, *arguments], check=True, timeout=300)
