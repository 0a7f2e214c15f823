"""Fixtures for the tests of values."""

from collections.abc import Iterator

import pytest

from tests.values.engines import WRITTEN, using


@pytest.fixture(params=[*WRITTEN, pytest.param("compiled", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test with each engine."""
    with using(request.param):
        yield request.param
