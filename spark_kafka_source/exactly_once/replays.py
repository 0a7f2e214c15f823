"""The comparison of a replay with the decision about the same micro-batch.

A replay of a micro-batch is not written again, since its rows are. That is right only if it has the
rows that were decided. A checkpoint that was restored from an older copy gives the same number to
other rows: they would be dropped.
"""

from enum import Enum

from spark_kafka_source.exactly_once.decision import BatchId, Content, Decision
from spark_kafka_source.exactly_once.errors import (
    DOUBT_OPTION,
    DoubtfulReplayError,
    ReplayDiffersError,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.logs import logger_of

logger = logger_of(__name__)


class Caution(Enum):
    """What is done about a replay that nobody can tell from other rows: `doubtfulReplays`."""

    WARN = "warn"
    FAIL = "fail"
    ACCEPT = "accept"
    """A replay counts as written, whatever rows it has. Other doubts are warnings."""

    def doubt(self, names: Names, text: str) -> None:
        """Warn, or raise `DoubtfulReplayError`."""
        if self is Caution.FAIL:
            raise DoubtfulReplayError(names.prefix, text)
        logger.warning("%s", text)

    def compare(self, names: Names, decided: Decision, batch: BatchId, replayed: Content) -> None:
        """Compare the content of a replay with that of the decision.

        Raises `ReplayDiffersError`, and what `doubt` raises.
        """
        written = decided.content
        if self is Caution.ACCEPT:
            return
        if replayed[:2] != written[:2]:
            raise ReplayDiffersError(names.prefix, batch, written, replayed, decided.write)
        if written.fingerprint not in (None, replayed.fingerprint):
            self.doubt(
                names,
                f"{batch} is a replay with {replayed}; written and decided were {written}. These "
                "are other rows, and they are not written. If the checkpoint was restored from a "
                "copy, put back the one that was in use last. If the query computes other rows "
                f"each time, set '{DOUBT_OPTION}' to '{Caution.ACCEPT.value}'",
            )
