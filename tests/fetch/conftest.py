"""The in-memory broker of three nodes of the consumer's tests, its client and a partition's log."""

from tests.consumer.conftest import broker, client, log

__all__ = ["broker", "client", "log"]
