"""Certificates for all tests of a package: creating keys takes time."""

import pytest

from tests.net.certificates import Certified, authority, certified_by
from tests.net.ports import LOOPBACK


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
