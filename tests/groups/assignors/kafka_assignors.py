"""Kafka's own assignors, in one JVM that runs KafkaAssignors.java: a line in and a line out."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.groups.assignors import Cluster, Subscription


class RefusedError(Exception):
    """The exception of Kafka's classes."""


class EndlessError(RefusedError):
    """Kafka's classes did not finish."""


class KafkaAssignors:
    """Kafka's assignments for subscriptions."""

    def __init__(self, start: "Callable[[], subprocess.Popen[str]]") -> None:
        self._start = start
        self._process = start()

    def end(self) -> None:
        """Kill the JVM, which may be in an endless loop."""
        with self._process as process:
            process.kill()

    def assign(
        self,
        assignor: str,
        cluster: Cluster,
        subscriptions: Mapping[str, Subscription],
        limit_s: int = 10,
    ) -> dict[str, bytes]:
        """Return each member's encoded assignment. Raise `EndlessError` if it takes too long."""
        encoded = {member: each.encode() for member, each in subscriptions.items()}
        instances = {member: each.group_instance_id for member, each in subscriptions.items()}
        return self.assign_encoded(assignor, cluster, encoded, instances, limit_s)

    def assign_encoded(
        self,
        assignor: str,
        cluster: Cluster,
        subscriptions: Mapping[str, bytes],
        instances: Mapping[str, str | None],
        limit_s: int = 10,
    ) -> dict[str, bytes]:
        """Return each member's assignment, from subscriptions in any version."""
        topics = (
            ":".join([_hex(topic), *map(_racks, partitions)])
            for topic, partitions in cluster.items()
        )
        members = (
            f"{_hex(member)}:{_hex(instances[member])}:{data.hex()}"
            for member, data in subscriptions.items()
        )
        what = f"{','.join(topics)} {','.join(members)}"
        answer = self._ask(f"assign {limit_s} {assignor} {what}")
        pairs = (each.split(":") for each in answer.split(" ") if each)
        return {bytes.fromhex(member).decode(): bytes.fromhex(data) for member, data in pairs}

    def user_data(self, assignor: str, assignment: bytes, generation_id: int) -> bytes | None:
        """Return an assignor's user data after an assignment in a generation."""
        answer = self._ask(f"user-data {assignor} {assignment.hex() or '-'} {generation_id}")
        return None if answer == "-" else bytes.fromhex(answer)

    def rewrite_subscription(self, data: bytes) -> bytes:
        """Let Kafka decode a subscription. Return Kafka's encoding of it."""
        return bytes.fromhex(self._ask(f"subscription {data.hex()}"))

    def rewrite_assignment(self, data: bytes) -> bytes:
        """Let Kafka decode an assignment. Return Kafka's encoding of it."""
        return bytes.fromhex(self._ask(f"assignment {data.hex()}"))

    def hash_order(self, texts: Sequence[str], *, computed: bool = False) -> list[str]:
        """Return the texts in the order of a `HashMap`."""
        how = "computed" if computed else "put"
        answer = self._ask(f"hash-order {how} {','.join(map(_hex, texts))}")
        return [bytes.fromhex(each).decode() for each in answer.split(",")]

    def first_of_set(self, topic: str, partitions: Sequence[str]) -> int:
        """Return the first of a `HashSet`, after each partition is added, or removed if present."""
        return int(self._ask(f"first-of-set {_hex(topic)} {','.join(partitions)}"))

    def _ask(self, question: str) -> str:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None
        questions.write(question + "\n")
        questions.flush()
        answer = answers.readline()
        assert answer.endswith("\n"), f"it ended at {question}"
        if answer.startswith("error java.util.concurrent.TimeoutException"):
            self.end()
            self._process = self._start()
            raise EndlessError(answer)
        if answer.startswith("error"):
            raise RefusedError(answer)
        return answer.removesuffix("\n")


def _racks(partition: PartitionInfo) -> str:
    return "/".join(map(_hex, sorted(partition.racks)))


def _hex(text: str | None) -> str:
    return "-" if text is None else text.encode().hex()


@contextmanager
def run_kafka_assignors(jars: Sequence[Path]) -> Iterator[KafkaAssignors]:
    """Run the assignors with Kafka's jars on the class path."""
    class_path = os.pathsep.join(map(str, jars))
    # Logs would go to the same standard output as the answers.
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF"]
    source = Path(__file__).with_name("KafkaAssignors.java")

    def start() -> "subprocess.Popen[str]":
        command = ["java", *quick, "-cp", class_path, str(source)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")

    assignors = KafkaAssignors(start)
    try:
        yield assignors
    finally:
        assignors.end()
