"""A broker that does not know a group without offsets, as another maker's does."""

from typing import Any

import pytest

from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.exactly_once.conftest import in_memory_trial

pytestmark = pytest.mark.memory(nodes=2)


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    def refuse_unknown(request: Any) -> Any:
        known = broker.cluster.has_offsets(request.group_id)
        return Action.HANDLE if known else error_named("GROUP_ID_NOT_FOUND")

    broker.control(OffsetFetchRequest, refuse_unknown, times=None)
    return broker


def test_the_first_micro_batch_and_those_after_it(broker: MemoryBroker, topic: str) -> None:
    trial = in_memory_trial(broker, topic)
    for batches in ((0, 1), (2, 3)):
        run = trial.query.start()
        for batch in batches:
            run.commit(batch, run.write(batch))
    trial.judge()
