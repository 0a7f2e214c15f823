"""The suite of silent brokers with `AIOConsumer`."""

import pytest

from tests.aio.held import HeldConsumer
from tests.consumer import consumers
from tests.consumer.test_silent_brokers import *  # noqa: F403


@pytest.fixture(autouse=True)
def on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "KafkaConsumer", HeldConsumer)
