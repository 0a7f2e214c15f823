"""Three brokers, each behind a gate, and faults for them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from spark_kafka_source.testing import LocalKafka, kafka_jars
from tools.java_program import JavaProgram, run_java
from tools.reliability.leaders import Leaders
from tools.reliability.writing.gate import Gate

BROKERS = (1, 2, 3)
PARTITIONS = 6


@dataclass(frozen=True, slots=True)
class Cluster:
    """Three brokers with their gates. Clients at `servers` come through the gates."""

    kafka: LocalKafka
    gates: tuple[Gate, ...]
    servers: str
    chance: Random
    mover: JavaProgram

    @property
    def direct(self) -> str:
        """The brokers' addresses without the gates."""
        return self.kafka.bootstrap_servers_of("INTERNAL")

    def create_topic(self, name: str) -> None:
        """Create a topic with three replicas. Two must have a record before it is acknowledged."""
        self.kafka.create_topic(name, PARTITIONS)

    def move_leaders(self, topic: str) -> int:
        """Make the next replica of each partition its leader. Return how many have moved."""
        return int(self.mover.ask(f"{self.direct} {topic}"))

    def await_in_sync(self, topic: str) -> None:
        """Wait until all brokers are in sync for the topic."""
        Leaders(self.kafka, topic).await_in_sync(*BROKERS)

    @property
    def cuts(self) -> int:
        """Number of connections cut so far."""
        return sum(each.cuts for each in self.gates)

    @contextmanager
    def cutting(self, rate: float) -> Iterator[None]:
        """Cut connections at this share of the Produce requests."""
        for each in self.gates:
            each.cut_rate = rate
        try:
            yield
        finally:
            for each in self.gates:
                each.cut_rate = 0.0


@contextmanager
def three_brokers(chance: Random) -> Iterator[Cluster]:
    """Yield the brokers, for the time of the context."""
    with behind_gates(chance, len(BROKERS)) as (kafka, gates), ExitStack() as stack:
        source = Path(__file__).with_name("MoveLeaders.java")
        mover = stack.enter_context(run_java(source, kafka_jars()))
        yield Cluster(kafka, gates, kafka.bootstrap_servers, chance, mover)


@contextmanager
def behind_gates(
    chance: Random, count: int, **given: Any
) -> Iterator[tuple[LocalKafka, tuple[Gate, ...]]]:
    """Yield brokers, each behind a gate. Clients come through the gates."""
    gates = tuple(Gate(chance) for _ in range(count))
    with ExitStack() as stack:
        ports = [stack.enter_context(each.serving()) for each in gates]
        kafka = stack.enter_context(LocalKafka(count, advertised_ports=ports, **given))
        for gate, broker in zip(gates, kafka.brokers, strict=True):
            gate.target_port = broker.node.client_port
        yield kafka, gates
