"""The record of a decision, in the metadata of a group's committed offset."""

from contextlib import suppress
from uuid import UUID

from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Content,
    Decision,
    Part,
    Winner,
    joined,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.producer import Place, ProducerId
from spark_kafka_source.topic_partition import TopicPartition

NAMES = Names("p")
_OF_0_3 = (
    b'{"v":1,"query":"q","run":"r","batch":7,"number":0,"parts":1,"rows":6,"bytes":60,"write":"t",'
    b'"part":0,"tasks":"AAAAAwAAAAEAAAAAAAAAAQABAAAAAAAF"}'
)


def decisions(data: bytes) -> None:
    """Any lines are refused or read. A decision that is read can be written."""
    with suppress(ValueError):
        parts = [Part.parse(each.decode()) for each in data.split(b"\n")]
        found = joined(NAMES, parts)
        assert all(NAMES.is_task_id(each.transactional_id) for each in found.winners)
        again = joined(NAMES, [Part.parse(each) for each in found.parts()])
        assert again == found


def decision_seeds() -> list[bytes]:
    """Return decisions of one part, of two, of none, and of version 0.3.0."""
    batch = BatchId("1b4e28ba-2fa1-11d2-883f-0016d3cca427", "run", 7)
    place = Place(TopicPartition("t", 1), 9, UUID(int=1))
    made = [_OF_0_3]
    for tasks in (0, 2, 80):
        winners = [
            Winner(
                str(NAMES.task_id("run", task, 0)),
                ProducerId(task, 1),
                1_700_000_000_000,
                place,
            )
            for task in range(tasks)
        ]
        decision = Decision(batch, tuple(winners), 1, Content(6, 60, 7), "t", "/checkpoint")
        made.append("\n".join(decision.parts()).encode())
    return [*made, b"", b"{}", b"[" * 4_000]
