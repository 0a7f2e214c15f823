"""A broker with tiered storage for a file's tests."""

from collections.abc import Iterator

import pytest

from tests.tiered_storage.tiered import TieredKafka, tiered_kafka


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredKafka]:
    with tiered_kafka(tmp_path_factory.mktemp("remote")) as tiered:
        yield tiered
