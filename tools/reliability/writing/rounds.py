"""One round: a topic, a producer, a fault, a verdict."""

import uuid
from dataclasses import dataclass

from tools.reliability.writing.cluster import PARTITIONS, Cluster
from tools.reliability.writing.faults import FAULTS
from tools.reliability.writing.judge import NOTHING, Verdict, judge
from tools.reliability.writing.load import Load


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of some rounds with one fault."""

    rounds: int = 0
    faults: int = 0
    verdict: Verdict = NOTHING

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.rounds + other.rounds,
            self.faults + other.faults,
            self.verdict + other.verdict,
        )


def run_round(cluster: Cluster, fault: str, *, idempotent: bool) -> Outcome:
    """Write while the fault is made, and judge the topic in the end."""
    topic = f"writing-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(topic)
    with Load(
        cluster.servers, topic, PARTITIONS, cluster.chance, enable_idempotence=idempotent
    ) as load:
        load.await_progress()
        made = FAULTS[fault](cluster, topic, load)
        load.await_progress()
    verdict = judge(load, cluster.direct, topic, PARTITIONS)
    cluster.kafka.delete_topic(topic)
    return Outcome(1, made, verdict)
