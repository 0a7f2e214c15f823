"""Registries for tests, and clients of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from spark_kafka_source.net import Retry
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import RegistryClient, RegistryConfig
from tests.net.conftest import ca, me, server
from tests.registry.server import TestRegistry, registry_server

__all__ = ["ca", "me", "server"]

MakeClient = Callable[..., RegistryClient]
QUICK = Retry(backoff_ms=1, backoff_max_ms=4)


def config(url: str, **options: str) -> RegistryConfig:
    """Return a configuration. `basic_auth_user` means `schema.registry.basic.auth.user`."""
    named = {f"schema.registry.{name.replace('_', '.')}": each for name, each in options.items()}
    return RegistryConfig.from_settings(Settings({"schema.registry.url": url} | named))


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with registry_server() as known:
        yield known


@pytest.fixture
def other() -> Iterator[TestRegistry]:
    with registry_server() as known:
        yield known


@pytest.fixture
def client_of() -> Iterator[MakeClient]:
    """Return a function that creates clients. They are closed after the test."""
    with ExitStack() as made:

        def make(url: str, **options: str) -> RegistryClient:
            client = RegistryClient(config(url, **options), retry=QUICK)
            made.callback(client.close)
            return client

        yield make


@pytest.fixture
def client(registry: TestRegistry, client_of: MakeClient) -> RegistryClient:
    return client_of(registry.url)
