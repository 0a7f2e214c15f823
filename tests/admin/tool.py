"""Kafka's own `kafka-consumer-groups`, in one JVM for all tests."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.java_program import JavaProgram, run_java

Row = dict[str, str]


class ConsumerGroupsTool:
    """A runner of the tool."""

    def __init__(self, program: JavaProgram, bootstrap_servers: str) -> None:
        self._program = program
        self._bootstrap_servers = bootstrap_servers

    def run(self, *arguments: str) -> str:
        """Run the tool. Return its output and its exceptions."""
        every = ["--bootstrap-server", self._bootstrap_servers, *arguments]
        return bytes.fromhex(self._program.ask("\t".join(every))).decode()

    def rows(self, *arguments: str) -> list[Row]:
        """Run the tool. Return the rows of its tables, by the headers' names."""
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
    """Run the tool's JVM."""
    with run_java(Path(__file__).with_name("Tool.java"), jars) as program:
        yield ConsumerGroupsTool(program, bootstrap_servers)
