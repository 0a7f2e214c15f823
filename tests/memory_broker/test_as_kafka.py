"""The in-memory broker says what a real one says, in conversations written here and drawn."""

from collections.abc import Iterable, Iterator

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.memory_broker import MemoryBroker
from tests.memory_broker.conversations import BEGINNING, CONVERSATIONS
from tests.memory_broker.said import differences, said
from tests.memory_broker.sides import InMemory, Real
from tests.memory_broker.steps import Step

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        yield broker


def compared(kafka: LocalKafka, memory: MemoryBroker, steps: Iterable[Step]) -> list[str]:
    """The differences of a conversation, each after its step."""
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
