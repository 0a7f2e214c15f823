"""The pages on asyncio: their table of calls, and their code, on an in-memory broker."""

import asyncio
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source import AIOConsumer, AIOProducer
from spark_kafka_source.testing.memory import MemoryBroker
from tests.documentation.pages import DOCS, under
from tests.producer.writing import values

DETAILS: Path = DOCS / "contributors" / "clients-in-detail.md"
PAGES = (DOCS / "consumer.md", DOCS / "producer.md")
MOST_SECONDS = 60


@pytest.fixture
def names(broker: MemoryBroker) -> dict[str, Any]:
    """Return the names that the blocks of the page define."""
    printed: asyncio.Queue[Any] = asyncio.Queue()
    names: dict[str, Any] = {"print": printed.put_nowait, "printed": printed}
    for block in (block for page in PAGES for block in under(page, "asyncio")):
        source = block.source.replace("localhost:9092", str(broker.address()))
        exec(compile(source, str(block), "exec"), names)  # our own page
    return names


def held(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, MOST_SECONDS))


@pytest.mark.parametrize("client", [AIOConsumer, AIOProducer], ids=lambda each: each.__name__)
def test_the_table_has_all_calls(client: type) -> None:
    calls = inspect.getmembers(client, callable)
    (row,) = re.findall(rf"^\| `{client.__name__}` \|(.+)\|(.+)\|$", DETAILS.read_text(), re.M)
    for cell, is_awaited in zip(row, (True, False), strict=True):
        assert re.findall(r"`(\w+)`", cell) == [
            name
            for name, call in calls
            if not name.startswith("_") and inspect.iscoroutinefunction(call) == is_awaited
        ]


def test_a_lifespan_has_a_producer_and_reads(broker: MemoryBroker, names: dict[str, Any]) -> None:
    (log,) = broker.create_topic("events")

    async def run() -> None:
        app: Any = SimpleNamespace(state=SimpleNamespace())
        async with names["lifespan"](app):
            await app.state.producer.send_and_wait("events", b"a")
            assert await names["printed"].get() == b"a"
            reading = {
                getattr(each.get_coro(), "__name__", ""): each for each in asyncio.all_tasks()
            }
        assert reading["read"].cancelled()

    held(run())
    assert values(log) == [b"a"]
