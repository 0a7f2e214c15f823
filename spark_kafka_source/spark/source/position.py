"""The position of a query: the end of the micro-batch that Spark planned last.

Spark 4.2 and newer give it to each `latestOffset`. Spark 4.0 and 4.1 tell it to the reader of a
restarted query by the call `partitions(end, end)`, before they ask the reader for anything. A
micro-batch that is not finished they run again first. The reader of a new query gets no such call.
After that the reader's own plans, and the tasks that Spark asks for, say how far the query is.
`tests/matrix/test_order_of_calls.py` holds this order.
"""

import json
from collections.abc import Mapping
from typing import Any

import pyspark

from spark_kafka_source.errors import LocalError
from spark_kafka_source.secret import shown
from spark_kafka_source.spark.source.source_offset import INITIAL, SourceOffset

WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
"""A setting of Spark's, false by default. With it, `latestOffset` comes first at a restart."""


class PositionToldLateError(LocalError):
    """Spark asked a restarted reader for an end before it told the position: `told`."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told

    def _text(self) -> str:
        return (
            f"Spark {pyspark.__version__} asked for the end of the next micro-batch before it said "
            f"that the query goes on at {self.told}. So the end was planned as that of a new "
            f"query. Nothing was read. Set '{WRAPPER}' to false, its default"
        )


class Position:
    """The end of the micro-batch that was planned last. In a new query it is `INITIAL`."""

    def __init__(self) -> None:
        self.offset = INITIAL
        self.is_finished = False
        """Whether Spark, asking for the next end, has finished the micro-batch up to here."""
        self.has_planned = False
        """Whether the reader has planned an end in this run."""
        self._json: Mapping[str, Any] = INITIAL.to_json()
        self._is_told = False
        self._is_taken_for_new = False

    def to_json(self) -> dict[str, Any]:
        """Return the position in the format in which Spark has it, since Spark compares texts."""
        return dict(self._json)

    def move_to(self, end: Mapping[str, Any]) -> SourceOffset:
        """Go to the end of a micro-batch that Spark has finished, or runs now. Return the end."""
        self.offset, self._json = SourceOffset.from_json(end), end
        self.is_finished = self._is_told = True
        return self.offset

    def restarted(self, end: Mapping[str, Any]) -> None:
        """Go to the last end of the former run. Raises `PositionToldLateError`."""
        self.move_to(end)
        if self._is_taken_for_new and not self.offset.initial:
            raise PositionToldLateError(shown(json.dumps(self.to_json())))

    def planned(self, end: SourceOffset) -> dict[str, Any]:
        """Go to an end that the reader has planned. Return it for Spark."""
        self.has_planned = True
        self._is_taken_for_new |= not self._is_told
        self.offset, self._json, self.is_finished = end, end.to_json(), False
        return self.to_json()
