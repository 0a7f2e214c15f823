"""The fixtures of the consumer's tests: a broker of three nodes, its client, a partition's log."""

from tests.consumer.conftest import broker, client, log

__all__ = ["broker", "client", "log"]
