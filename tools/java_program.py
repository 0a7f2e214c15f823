"""A Java program for tests, with Kafka's jars: a line in, a line out, one JVM for many tests."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.testing.java import QUICK_START


class RefusedError(Exception):
    """The exception of the program, or of Kafka's class in it."""


class JavaProgram:
    """A running Java program. It answers each line with a line. An error begins with `error`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, question: str) -> str:
        """Return the answer. Raise `RefusedError` for an error."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None
        questions.write(question + "\n")
        questions.flush()
        answer = answers.readline()
        assert answer, f"it ended at {question}"
        if answer.startswith("error"):
            raise RefusedError(f"{answer} to {question}")
        return answer.removesuffix("\n")


@contextmanager
def run_java(
    source: Path,
    jars: Sequence[Path],
    *arguments: str,
    java_options: Sequence[str] = QUICK_START,
) -> Iterator[JavaProgram]:
    """Run a source file with the jars on its class path."""
    class_path = os.pathsep.join(map(str, jars))
    command = ["java", *java_options, "-cp", class_path, str(source), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        # The end of the block closes the JVM's stdin, so that the JVM ends, and waits for this.
        yield JavaProgram(process)
