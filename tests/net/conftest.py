"""Certificates for all tests of a package: creating keys takes time."""

import pytest

from spark_kafka_source.net import connection
from tools.certificates import Certified, authority, certified_by
from tools.ports import LOOPBACK


@pytest.fixture(autouse=True)
def _probes_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slow answer to a probe count: it says what a listener expects."""
    monkeypatch.setattr(connection, "_PROBE_TIMEOUT_MS", 60_000)


@pytest.fixture(scope="session")
def ca() -> Certified:
    """Return the authority of the server's and the client's certificates."""
    return authority()


@pytest.fixture(scope="session")
def server(ca: Certified) -> Certified:
    return certified_by(ca, LOOPBACK, "localhost")


@pytest.fixture(scope="session")
def me(ca: Certified) -> Certified:
    """Return the client's certificate."""
    return certified_by(ca)
