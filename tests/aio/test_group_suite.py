"""The suite of consumers in groups with `AIOConsumer`."""

import pytest

from tests.aio.held import HeldConsumer
from tests.consumer import consumers
from tests.consumer.test_consumer_group import *  # noqa: F403


@pytest.fixture(autouse=True)
def on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "KafkaConsumer", HeldConsumer)


# A listener awaits the calls of an `AIOConsumer`: see test_aio_consumer.py.
del test_a_listener_may_commit_what_is_revoked, test_a_listener_may_not_poll  # noqa: F821
del test_callbacks_are_run_in_the_thread_that_polls  # noqa: F821
