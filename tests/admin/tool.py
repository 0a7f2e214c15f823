"""Kafka's own `kafka-consumer-groups`, in one JVM for all tests."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.java_program import JavaProgram, run_java

Row = dict[str, str]


class ConsumerGroupsTool:
    """Runs it with some arguments."""

    def __init__(self, program: JavaProgram, bootstrap_servers: str) -> None:
        self._program = program
        self._bootstrap_servers = bootstrap_servers

    def run(self, *arguments: str) -> str:
        """All that it prints, and what it throws."""
        every = ["--bootstrap-server", self._bootstrap_servers, *arguments]
        return bytes.fromhex(self._program.ask("\t".join(every))).decode()

    def rows(self, *arguments: str) -> list[Row]:
        """The rows of the tables that it prints, by the names in their headers."""
        found: list[Row] = []
        names: list[str] = []
        for line in re.sub(r" +\(\w+\)", "", self.run(*arguments)).splitlines():
            cells = line.split()
            if cells[:1] in (["GROUP"], ["TOPIC"]):
                names = cells
            elif names and len(cells) == len(names):
                found.append(dict(zip(names, cells, strict=True)))
        return found


@contextmanager
def consumer_groups_tool(
    jars: Sequence[Path], bootstrap_servers: str
) -> Iterator[ConsumerGroupsTool]:
    """Runs the tool's JVM."""
    with run_java(Path(__file__).with_name("Tool.java"), jars) as program:
        yield ConsumerGroupsTool(program, bootstrap_servers)
