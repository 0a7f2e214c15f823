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
            "BatchId": "decision",
            "CHECK_OPTION": "errors",
            "Caution": "replays",
            "Content": "decision",
            "DOUBT_OPTION": "errors",
            "DecidedRowsLostError": "errors",
            "Decision": "decision",
            "Decisions": "decisions",
            "DoubtfulReplayError": "errors",
            "Names": "names",
            "NotYetCommittedError": "errors",
            "OtherDriverError": "errors",
            "PREFIX_OPTION": "names",
            "PartlyCommittedError": "errors",
            "PrefixInUseError": "errors",
            "PrefixIsGroupError": "errors",
            "ReplayCheck": "replays",
            "ReplayDiffersError": "errors",
            "Step": "two_phase",
            "TIMEOUT_OPTION": "timeouts",
            "TaskId": "names",
            "TransactionTimedOutError": "errors",
            "TwoPhaseCommit": "two_phase",
            "Winner": "decision",
            "begin_attempt": "attempts",
            "checked_prefix": "names",
            "chosen_timeout_ms": "timeouts",
            "left_open": "endings",
            "prefix_of_query": "names",
            "refused_timeout": "timeouts",
        },
    )
