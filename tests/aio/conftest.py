"""The suites of the blocking clients, held on asyncio."""

from tests.consumer.conftest import broker, client, log

__all__ = ["broker", "client", "log"]
