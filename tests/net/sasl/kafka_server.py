"""Kafka's SASL servers, in one JVM that runs KafkaServer.java."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.net.sasl.mechanism import Mechanism
from tools.java_program import JavaProgram, run_java


class KafkaServer:
    """Kafka's server for one mechanism at a time, and Kafka's JAAS parser."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def let_in(self, client: Mechanism, mechanism: str, *known: str) -> str:
        """Return the user name that Kafka accepts. `known` are Kafka's credentials: a name, ..."""
        self._program.ask(
            " ".join([mechanism, *(each.encode().hex() for each in known[:2]), *known[2:]])
        )
        said: bytes | None = client.first()
        principal = ""
        while said is not None:
            challenge, principal = self._program.ask(f"response {said.hex()}").split(" ")
            said = client.next(bytes.fromhex(challenge))
        assert principal, "the client is done, and the server is not"
        return bytes.fromhex(principal).decode()

    def jaas(self, config: str) -> tuple[str, dict[str, str]]:
        """Return the login module and its options."""
        module, *options = self._program.ask(f"jaas {config.encode().hex()}").split(" ")
        pairs = (each.split("=") for each in options)
        found = {bytes.fromhex(name).decode(): bytes.fromhex(to).decode() for name, to in pairs}
        return bytes.fromhex(module).decode(), found


@contextmanager
def run_kafka_server(jars: Sequence[Path]) -> Iterator[KafkaServer]:
    """Run the servers with Kafka's jars on the class path."""
    with run_java(Path(__file__).with_name("KafkaServer.java"), jars) as program:
        yield KafkaServer(program)
