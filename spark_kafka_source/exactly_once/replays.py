"""The comparison of a replay with the decision about the same micro-batch.

A replay of a micro-batch is not written again, since its rows are. That is right only if it has the
rows that were decided. A checkpoint that was restored from an older copy gives the same number to
other rows: they would be dropped.
"""

from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.exactly_once.decision import BatchId, Content, Decision
from spark_kafka_source.exactly_once.errors import DoubtfulReplayError, ReplayDiffersError
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.logs import logger_of

logger = logger_of(__name__)


class ReplayCheck(Enum):
    """The ways to compare a replay with the decision."""

    NONE = "none"
    """Whatever a replay has, its micro-batch counts as written."""
    ROWS = "rows"
    """More rows are an error. Fewer rows, or other bytes, are a doubt."""
    CONTENTS = "contents"
    """Other rows are an error, by a fingerprint of all keys and values."""


@dataclass(frozen=True, slots=True)
class Caution:
    """The checks of a replay. `fails` turns a doubt from a warning into an error."""

    check: ReplayCheck = ReplayCheck.ROWS
    fails: bool = False

    def doubt(self, names: Names, text: str) -> None:
        """Warn, or raise `DoubtfulReplayError`."""
        if self.fails:
            raise DoubtfulReplayError(names.prefix, text)
        logger.warning("%s", text)

    def compare(
        self, names: Names, decided: Decision, batch: BatchId, replayed: Content | None
    ) -> None:
        """Compare the content of a replay with that of the decision. None is not compared.

        Raises `ReplayDiffersError`, and what `doubt` raises.
        """
        written = decided.content
        if self.check is ReplayCheck.NONE or replayed is None:
            return
        if written is None:
            what = f"{batch} is a replay, and its decision does not say how many rows it had"
            self.doubt(
                names, f"{what} (version 0.2.0 made it). Its {replayed} are not written again"
            )
            return
        is_compared = None not in (written.fingerprint, replayed.fingerprint)
        is_other = is_compared and (replayed.rows, replayed.fingerprint) != (
            written.rows,
            written.fingerprint,
        )
        if replayed.rows > written.rows or is_other:
            raise ReplayDiffersError(names.prefix, batch, written, replayed, decided.write)
        if self.check is ReplayCheck.CONTENTS and not is_compared:
            self.doubt(
                names, f"{batch} is a replay, and its decision has no fingerprint to compare with"
            )
        if replayed[:2] != written[:2]:
            self.doubt(
                names,
                f"{batch} is a replay with {replayed}; written and decided were {written}. It is "
                "not written again. If the checkpoint was restored from a copy, rows may be "
                "missing",
            )
