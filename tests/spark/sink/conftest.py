"""A second topic, for tests that write what they read."""

import pytest

from tools.traffic import Events


@pytest.fixture
def target(events: Events) -> Events:
    """Another topic of two partitions, to write to."""
    target = events.another("target")
    target.create(2)
    return target
