"""Certificates that the tests of a package share: making keys takes time."""

import pytest

from tests.net.certificates import Certified, authority, certified_by
from tests.net.ports import LOOPBACK


@pytest.fixture(scope="session")
def ca() -> Certified:
    """Who vouches for the server and the client."""
    return authority()


@pytest.fixture(scope="session")
def server(ca: Certified) -> Certified:
    return certified_by(ca, LOOPBACK, "localhost")


@pytest.fixture(scope="session")
def me(ca: Certified) -> Certified:
    """The client."""
    return certified_by(ca)
