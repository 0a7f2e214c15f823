"""The record of a decision, in the metadata of a group's committed offset."""

from contextlib import suppress

from spark_kafka_source.exactly_once import BatchId, Decision, Names, Winner
from spark_kafka_source.exactly_once.decision import Part, joined
from spark_kafka_source.producer import ProducerId

NAMES = Names("p")


def decisions(data: bytes) -> None:
    """Any lines are refused or read. A decision that is read can be written."""
    with suppress(ValueError):
        parts = [Part.parse(each.decode()) for each in data.split(b"\n")]
        found = joined(NAMES, parts)
        assert all(NAMES.is_task_id(each.transactional_id) for each in found.winners)
        again = joined(NAMES, [Part.parse(each) for each in found.parts()])
        assert again == found


def decision_seeds() -> list[bytes]:
    """Return decisions of one part, of two, and of none."""
    batch = BatchId("1b4e28ba-2fa1-11d2-883f-0016d3cca427", "run", 7)
    made = []
    for tasks in (0, 2, 120):
        winners = [
            Winner(str(NAMES.task_id("run", task, 0)), ProducerId(task, 1), 1_700_000_000_000)
            for task in range(tasks)
        ]
        made.append("\n".join(Decision(batch, tuple(winners), 1).parts()).encode())
    return [*made, b"", b"{}", b"[" * 4_000]
