"""The SASL servers of Kafka's brokers: one JVM that runs KafkaServer.java."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.net.sasl import Mechanism


class RefusedError(Exception):
    """What Kafka's server raised."""


class KafkaServer:
    """Kafka's server of one mechanism at a time, and Kafka's reading of JAAS."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def let_in(self, client: Mechanism, mechanism: str, *known: str) -> str:
        """Whom Kafka takes the client for; `known` is what it knows: a name, a password, ..."""
        self._ask(" ".join([mechanism, *(each.encode().hex() for each in known[:2]), *known[2:]]))
        said: bytes | None = client.first()
        principal = ""
        while said is not None:
            challenge, principal = self._ask(f"response {said.hex()}").split(" ")
            said = client.next(bytes.fromhex(challenge))
        assert principal, "the client is done, and the server is not"
        return bytes.fromhex(principal).decode()

    def jaas(self, config: str) -> tuple[str, dict[str, str]]:
        """The login module, and its options."""
        module, *options = self._ask(f"jaas {config.encode().hex()}").split(" ")
        pairs = (each.split("=") for each in options)
        found = {bytes.fromhex(name).decode(): bytes.fromhex(to).decode() for name, to in pairs}
        return bytes.fromhex(module).decode(), found

    def _ask(self, question: str) -> str:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None
        questions.write(question + "\n")
        questions.flush()
        answer = answers.readline().removesuffix("\n")
        assert answer, f"it ended at {question}"
        if answer.startswith("error"):
            raise RefusedError(answer)
        return answer


@contextmanager
def run_kafka_server(jars: Sequence[Path]) -> Iterator[KafkaServer]:
    """Runs them with Kafka's jars on the class path."""
    class_path = os.pathsep.join(map(str, jars))
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command = ["java", *quick, "-cp", class_path, str(Path(__file__).with_name("KafkaServer.java"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        # Leaving the block closes the JVM's stdin, at which it ends, and waits for it.
        yield KafkaServer(process)
