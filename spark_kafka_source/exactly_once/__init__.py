"""Exactly-once writes by many tasks: one transaction for each task, and one decision for all.

`two_phase` has the protocol. `docs/exactly-once.md` has its guarantees and their limits.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.exactly_once.attempts import begin_attempt
    from spark_kafka_source.exactly_once.decision import BatchId, Content, Decision, Winner
    from spark_kafka_source.exactly_once.decisions import Decisions
    from spark_kafka_source.exactly_once.endings import left_open
    from spark_kafka_source.exactly_once.errors import (
        CHECK_OPTION,
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
    from spark_kafka_source.exactly_once.replays import Caution, ReplayCheck
    from spark_kafka_source.exactly_once.timeouts import (
        TIMEOUT_OPTION,
        chosen_timeout_ms,
        refused_timeout,
    )
    from spark_kafka_source.exactly_once.two_phase import Step, TwoPhaseCommit

__all__ = [
    "CHECK_OPTION",
    "DOUBT_OPTION",
    "PREFIX_OPTION",
    "TIMEOUT_OPTION",
    "BatchId",
    "Caution",
    "Content",
    "DecidedRowsLostError",
    "Decision",
    "Decisions",
    "DoubtfulReplayError",
    "Names",
    "NotYetCommittedError",
    "OtherDriverError",
    "PartlyCommittedError",
    "PrefixInUseError",
    "PrefixIsGroupError",
    "ReplayCheck",
    "ReplayDiffersError",
    "Step",
    "TaskId",
    "TransactionTimedOutError",
    "TwoPhaseCommit",
    "Winner",
    "begin_attempt",
    "checked_prefix",
    "chosen_timeout_ms",
    "left_open",
    "prefix_of_query",
    "refused_timeout",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "attempts": "begin_attempt",
            "decision": "BatchId Content Decision Winner",
            "decisions": "Decisions",
            "endings": "left_open",
            "errors": (
                "CHECK_OPTION DOUBT_OPTION DecidedRowsLostError DoubtfulReplayError "
                "NotYetCommittedError OtherDriverError PartlyCommittedError PrefixInUseError "
                "PrefixIsGroupError ReplayDiffersError TransactionTimedOutError"
            ),
            "names": "Names PREFIX_OPTION TaskId checked_prefix prefix_of_query",
            "replays": "Caution ReplayCheck",
            "timeouts": "TIMEOUT_OPTION chosen_timeout_ms refused_timeout",
            "two_phase": "Step TwoPhaseCommit",
        },
    )
