"""Asks Kafka's own Java classes: one JVM that runs Oracle.java, a line in and a line out."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Oracle:
    """What Kafka's classes make of a message's bytes. `name` is Kafka's, such as `FetchRequest`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def rewrite(self, name: str, version: int, data: bytes) -> bytes:
        """The message that Kafka reads in `data`, as Kafka writes it."""
        return bytes.fromhex(self._ask(f"rewrite {name} {version} {data.hex()}"))

    def json(self, name: str, version: int, data: bytes) -> dict[str, Any]:
        """The message that Kafka reads in `data`, field by field."""
        answer: dict[str, Any] = json.loads(self._ask(f"json {name} {version} {data.hex()}"))
        return answer

    def header_versions(self, key: int, version: int) -> tuple[int, int]:
        """Which header goes before a request and before its response."""
        request, response = self._ask(f"headers {key} {version}").split()
        return int(request), int(response)

    def errors(self) -> list[tuple[int, str, str]]:
        """Kafka's error codes: number, name, and the remedy by the class of its exception."""
        rows = (row.split(":") for row in self._ask("errors").split())
        return [(int(code), name, remedy) for code, name, remedy in rows]

    def _ask(self, question: str) -> str:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None
        questions.write(question + "\n")
        questions.flush()
        answer = answers.readline()
        assert answer and not answer.startswith("error"), f"{answer or 'it ended'} to {question}"
        return answer.removesuffix("\n")


@contextmanager
def ask_kafka(jars: Sequence[Path]) -> Iterator[Oracle]:
    """Runs the oracle with Kafka's jars on its class path."""
    class_path = os.pathsep.join(map(str, jars))
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command = ["java", *quick, "-cp", class_path, str(Path(__file__).with_name("Oracle.java"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        # Leaving the block closes the JVM's stdin, at which it ends, and waits for it.
        yield Oracle(process)
