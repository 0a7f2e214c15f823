"""What a driver has decided about a micro-batch: the record by which a replay knows it.

It is the metadata of an offset that is committed to a group, of at most 4096 bytes. The decision
about many tasks has several parts, in as many groups.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.exactly_once.names import Names, TaskId
from spark_kafka_source.producer import PreparedTransaction, ProducerId

_VERSION = 1
# A broker takes 4096 bytes (`offset.metadata.max.bytes`); what is around the tasks takes the rest.
_PART_CHARACTERS = 3_500
_TASK_BYTES = 4 + 4 + 8 + 2


@dataclass(frozen=True, slots=True)
class BatchId:
    """Which micro-batch it is, of which query, in which of the query's runs."""

    query_id: str
    run_id: str
    batch_id: int

    def __str__(self) -> str:
        return f"batch {self.batch_id} of query {self.query_id} (run {self.run_id})"


@dataclass(frozen=True, slots=True)
class Decision:
    """The transactions that make up a micro-batch: those are to be committed, and no others."""

    batch: BatchId
    winners: tuple[PreparedTransaction, ...]

    def parts(self) -> list[str]:
        """Return it as texts, each short enough for an offset's metadata."""
        tasks = base64.b64encode(b"".join(map(_task_bytes, self.winners))).decode()
        starts = range(0, max(len(tasks), 1), _PART_CHARACTERS)
        shared = {
            "v": _VERSION,
            "query": self.batch.query_id,
            "run": self.batch.run_id,
            "batch": self.batch.batch_id,
            "parts": len(starts),
        }
        return [
            json.dumps(
                shared | {"part": part, "tasks": tasks[start : start + _PART_CHARACTERS]},
                separators=(",", ":"),
            )
            for part, start in enumerate(starts)
        ]

    @classmethod
    def parse(cls, names: Names, parts: Sequence[str]) -> "Decision":
        """Return what was written by `parts`. Raises `ProtocolError` for anything else."""
        try:
            found = [json.loads(each) for each in parts]
            shared = [{key: each[key] for key in _SHARED} for each in found]
            if any(each != shared[0] for each in shared) or shared[0]["v"] != _VERSION:
                raise ValueError("its parts do not fit together")
            batch = BatchId(str(shared[0]["query"]), str(shared[0]["run"]), int(shared[0]["batch"]))
            tasks = base64.b64decode("".join(each["tasks"] for each in found), validate=True)
            return cls(batch, tuple(_winners(names, batch, tasks)))
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            what = f"the record of decisions in group {names.group_id(0)!r} cannot be read"
            raise ProtocolError(f"{what}: {error}") from error


_SHARED = ("v", "query", "run", "batch", "parts")


def part_count(text: str) -> int:
    """Return how many parts there are, by the first. Raises `ValueError` for anything else."""
    found = json.loads(text)
    count = found.get("parts") if isinstance(found, dict) else None
    if not isinstance(count, int) or not 1 <= count <= _MOST_PARTS:
        raise ValueError(f"{text[:80]!r} is no decision")
    return count


_MOST_PARTS = 1_000


def _task_bytes(winner: PreparedTransaction) -> bytes:
    found = TaskId.parse(winner.transactional_id)
    if found is None:
        raise ValueError(f"{winner.transactional_id!r} is no id of a task")
    producer_id, epoch = winner.producer
    return (
        found.task.to_bytes(4)
        + found.attempt.to_bytes(4)
        + producer_id.to_bytes(8)
        + epoch.to_bytes(2)
    )


def _winners(names: Names, batch: BatchId, tasks: bytes) -> list[PreparedTransaction]:
    if len(tasks) % _TASK_BYTES:
        raise ValueError(f"{len(tasks)} bytes of tasks")
    found = []
    for start in range(0, len(tasks), _TASK_BYTES):
        row = tasks[start : start + _TASK_BYTES]
        task, attempt = int.from_bytes(row[:4]), int.from_bytes(row[4:8])
        producer = ProducerId(int.from_bytes(row[8:16]), int.from_bytes(row[16:]))
        transactional_id = names.task_id(batch.run_id, task, attempt)
        found.append(PreparedTransaction(transactional_id, producer))
    return found
