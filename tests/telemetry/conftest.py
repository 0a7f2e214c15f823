"""A last push that has time."""

import pytest

from spark_kafka_source.telemetry import push


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the last push wait for its answer: half a second is little on a busy machine."""
    monkeypatch.setattr(push, "_LAST_PUSH_MS", 60_000)
