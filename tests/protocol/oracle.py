"""Kafka's own Java classes, in one JVM that runs Oracle.java: a line in and a line out."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.java_program import JavaProgram, run_java


class Oracle:
    """Kafka's reader and writer of messages. `name` is Kafka's name, such as `FetchRequest`."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def rewrite(self, name: str, version: int, data: bytes) -> bytes:
        """Let Kafka decode `data`. Return Kafka's encoding of the message."""
        return bytes.fromhex(self._program.ask(f"rewrite {name} {version} {data.hex()}"))

    def json(self, name: str, version: int, data: bytes) -> dict[str, Any]:
        """Let Kafka decode `data`. Return the message's fields."""
        answer: dict[str, Any] = json.loads(
            self._program.ask(f"json {name} {version} {data.hex()}")
        )
        return answer

    def header_versions(self, key: int, version: int) -> tuple[int, int]:
        """Return the header versions of a request and its response."""
        request, response = self._program.ask(f"headers {key} {version}").split()
        return int(request), int(response)

    def constant(self, name: str, constant: str) -> int:
        """Return a numeric constant of Kafka's request class, such as `ProduceRequest`."""
        return int(self._program.ask(f"constant {name} {constant}"))

    def errors(self) -> list[tuple[int, str, str]]:
        """Return Kafka's error codes: number, name, and the remedy by the exception's class."""
        rows = (row.split(":") for row in self._program.ask("errors").split())
        return [(int(code), name, remedy) for code, name, remedy in rows]


@contextmanager
def ask_kafka(jars: Sequence[Path]) -> Iterator[Oracle]:
    """Run the oracle with Kafka's jars on its class path."""
    with run_java(Path(__file__).with_name("Oracle.java"), jars) as program:
        yield Oracle(program)
