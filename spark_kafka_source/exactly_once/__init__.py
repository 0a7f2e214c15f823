"""Exactly-once writes by many tasks: one transaction for each task, and one decision for all.

`driver`, `settling`, `slots` and `worker` have the protocol, without IO. `Commits` and `Worker` are
its two sides. `docs/exactly-once.md` has its guarantees and their limits.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.exactly_once.checks import MOVED_OPTION, Checkpoint
    from spark_kafka_source.exactly_once.committing import Commits
    from spark_kafka_source.exactly_once.decision import BatchId, Content, Decision, Seen, Winner
    from spark_kafka_source.exactly_once.decision_store import DecisionStore
    from spark_kafka_source.exactly_once.driver import PreparedWrite
    from spark_kafka_source.exactly_once.errors import (
        DOUBT_OPTION,
        DecidedRowsLostError,
        DoubtfulReplayError,
        NotYetCommittedError,
        OtherDriverError,
        PartlyCommittedError,
        PrefixInUseError,
        PrefixIsGroupError,
        ReplayDiffersError,
        TransactionTimedOutError,
    )
    from spark_kafka_source.exactly_once.names import (
        PREFIX_OPTION,
        Names,
        TaskId,
        checked_prefix,
        prefix_of_query,
    )
    from spark_kafka_source.exactly_once.replays import Caution
    from spark_kafka_source.exactly_once.requests import Steps
    from spark_kafka_source.exactly_once.slots import Slot
    from spark_kafka_source.exactly_once.step_runner import StepRunner
    from spark_kafka_source.exactly_once.worker import Worker

__all__ = [
    "DOUBT_OPTION",
    "MOVED_OPTION",
    "PREFIX_OPTION",
    "BatchId",
    "Caution",
    "Checkpoint",
    "Commits",
    "Content",
    "DecidedRowsLostError",
    "Decision",
    "DecisionStore",
    "DoubtfulReplayError",
    "Names",
    "NotYetCommittedError",
    "OtherDriverError",
    "PartlyCommittedError",
    "PrefixInUseError",
    "PrefixIsGroupError",
    "PreparedWrite",
    "ReplayDiffersError",
    "Seen",
    "Slot",
    "StepRunner",
    "Steps",
    "TaskId",
    "TransactionTimedOutError",
    "Winner",
    "Worker",
    "checked_prefix",
    "prefix_of_query",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "checks": "MOVED_OPTION Checkpoint",
            "committing": "Commits",
            "decision": "BatchId Content Decision Seen Winner",
            "decision_store": "DecisionStore",
            "driver": "PreparedWrite",
            "errors": (
                "DOUBT_OPTION DecidedRowsLostError DoubtfulReplayError "
                "NotYetCommittedError OtherDriverError PartlyCommittedError PrefixInUseError "
                "PrefixIsGroupError ReplayDiffersError TransactionTimedOutError"
            ),
            "names": "Names PREFIX_OPTION TaskId checked_prefix prefix_of_query",
            "replays": "Caution",
            "slots": "Slot",
            "requests": "Steps",
            "step_runner": "StepRunner",
            "worker": "Worker",
        },
    )
