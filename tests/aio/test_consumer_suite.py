"""The consumer's suite with `AIOConsumer`."""

import pytest

from tests.aio.held import HeldConsumer
from tests.consumer import consumers
from tests.consumer.test_kafka_consumer import *  # noqa: F403


@pytest.fixture(autouse=True)
def on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "KafkaConsumer", HeldConsumer)


# Held on a loop of their own, these calls come from two threads, or after the loop's end.
del test_two_threads_at_once_are_refused, test_a_closed_one_cannot_be_used_but_closed  # noqa: F821
