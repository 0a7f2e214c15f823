"""Brokers in memory never seem silent here, unless a test says so."""

import pytest


@pytest.fixture(autouse=True)
def _unhurried(unhurried: None) -> None:
    """See `tests/fixtures.py`."""
