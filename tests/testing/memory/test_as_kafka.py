"""The in-memory broker answers like a real one, in written and in drawn conversations.

CONVERSATIONS=800 in the environment draws more conversations than the default.
"""

import os
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings

from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import MemoryBroker
from tests.testing.memory import drawn
from tests.testing.memory.conversations import BEGINNING, CONVERSATIONS, PARTINGS
from tests.testing.memory.said import differences, said
from tests.testing.memory.sides import InMemory, Real
from tests.testing.memory.steps import Step

pytestmark = [pytest.mark.kafka, pytest.mark.long]

EXAMPLES = int(os.environ.get("CONVERSATIONS", "60"))
PROPERTIES = {
    # The KIP-848 coordinator assigns within the heartbeat, as the in-memory one does.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    "auto.create.topics.enable": "true",
    # All records are in one segment: the answer to a fetch never spans two.
    "log.roll.hours": "1000000",
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    with LocalKafka(properties=PROPERTIES) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        broker.cluster.creates_topics = True
        yield broker


def compared(kafka: LocalKafka, memory: MemoryBroker, steps: Iterable[Step]) -> list[str]:
    """Return the differences of a conversation, each with its step."""
    found = []
    with Real(kafka) as real, InMemory(memory) as double:
        for place, step in enumerate([*BEGINNING, *steps], 1 - len(BEGINNING)):
            theirs, ours = said(real, step.take(real)), said(double, step.take(double))
            found += [f"{place} {step}: {line}" for line in differences(theirs, ours)]
    return found


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation(name: str, kafka: LocalKafka, memory: MemoryBroker) -> None:
    if found := compared(kafka, memory, CONVERSATIONS[name]):
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("name", PARTINGS)
def test_where_they_part(name: str, kafka: LocalKafka, memory: MemoryBroker) -> None:
    """If the answers agree again, the conversation belongs to the ordinary ones."""
    assert compared(kafka, memory, PARTINGS[name].steps), PARTINGS[name].reason


@settings(max_examples=EXAMPLES, derandomize=True)
@given(steps=drawn.CONVERSATIONS)
def test_drawn_conversations(kafka: LocalKafka, memory: MemoryBroker, steps: list[Step]) -> None:
    found = compared(kafka, memory, steps)
    assert not found, "\n".join(found)
