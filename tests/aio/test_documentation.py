"""The page on asyncio: its table of calls, and its code, on an in-memory broker."""

import asyncio
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source import AIOConsumer, AIOProducer
from tests.documentation.pages import DOCS, blocks
from tests.memory_broker import MemoryBroker
from tests.producer.writing import values

PAGE: Path = DOCS / "asyncio.md"
MOST_SECONDS = 30


@pytest.fixture
def names(broker: MemoryBroker) -> dict[str, Any]:
    """Return the names that the blocks of the page define."""
    printed: asyncio.Queue[Any] = asyncio.Queue()
    names: dict[str, Any] = {"print": printed.put_nowait, "printed": printed}
    for block in blocks(PAGE):
        source = block.source.replace("localhost:9092", str(broker.address()))
        exec(compile(source, str(block), "exec"), names)  # our own page
    return names


def held(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, MOST_SECONDS))


@pytest.mark.parametrize("client", [AIOConsumer, AIOProducer], ids=lambda each: each.__name__)
def test_the_table_has_all_calls(client: type) -> None:
    calls = inspect.getmembers(client, callable)
    (row,) = re.findall(rf"^\| `{client.__name__}` \|(.+)\|(.+)\|$", PAGE.read_text(), re.M)
    for cell, is_awaited in zip(row, (True, False), strict=True):
        assert re.findall(r"`(\w+)`", cell) == [
            name
            for name, call in calls
            if not name.startswith("_") and inspect.iscoroutinefunction(call) == is_awaited
        ]


def test_the_first_example_writes_and_reads(broker: MemoryBroker, names: dict[str, Any]) -> None:
    broker.create_topic("events")

    async def run() -> None:
        running = asyncio.create_task(names["main"]())
        found = [await names["printed"].get() for _ in range(20)]
        assert [each for each in found if isinstance(each, int)] == list(range(10))
        assert [each for each in found if isinstance(each, bytes)] == [b"%d" % i for i in range(10)]
        running.cancel()
        await asyncio.wait([running])

    held(run())


def test_a_lifespan_has_a_producer_and_reads(broker: MemoryBroker, names: dict[str, Any]) -> None:
    (log,) = broker.create_topic("events")

    async def run() -> None:
        app: Any = SimpleNamespace(state=SimpleNamespace())
        async with names["lifespan"](app):
            await app.state.producer.send_and_wait("events", b"a")
            reading = {
                getattr(each.get_coro(), "__name__", ""): each for each in asyncio.all_tasks()
            }
        assert reading["read"].cancelled()

    held(run())
    assert values(log) == [b"a"]
