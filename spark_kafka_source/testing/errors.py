"""Errors of a LocalKafka or a LocalRegistry."""

import re
from collections.abc import Sequence
from pathlib import Path

from spark_kafka_source.errors import LocalError, RemoteError

MAX_LINES = 40
"""The number of lines of a log in an error's text."""

MAX_LINES_SEARCHED = 1_000

_COMPLAINT = re.compile(r" (?:ERROR|FATAL) |^(?:Caused by: )?[\w.$]+(?:Exception|Error)\b")


def tail(text: str) -> str:
    """Return the last lines of a log."""
    return "\n".join(text.splitlines()[-MAX_LINES:])


def _excerpt(log: Path) -> str:
    """Return a broker's complaints and the last lines of its log. Empty if there is no log.

    A broker that fails then shuts down, which may take more lines than the tail has.
    """
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    recent, last = lines[-MAX_LINES_SEARCHED:-MAX_LINES], lines[-MAX_LINES:]
    complaints = [line for line in recent if _COMPLAINT.search(line)]
    return "\n".join([*complaints[-MAX_LINES:], *last])


class JavaError(LocalError):
    """A suitable Java, or PySpark's Ivy, is missing. The text names it."""


class JarsError(RemoteError):
    """Jars could not be downloaded. `coordinates` names them, `reason` tells the fault."""

    def __init__(self, coordinates: Sequence[str], reason: str) -> None:
        super().__init__(tuple(coordinates), reason)
        self.coordinates, self.reason = tuple(coordinates), reason

    def __str__(self) -> str:
        return (
            f"Could not download {', '.join(self.coordinates)}. They come from Maven Central by"
            f" PySpark's Ivy: check the network and the coordinates.\n{self.reason}"
        )


class BrokerFailedError(RemoteError):
    """A broker ended, or did not start or stop in time. The text quotes its `log`."""

    def __init__(self, what: str, log: Path) -> None:
        super().__init__(what, log)
        self.what, self.log = what, log
        self._excerpt = _excerpt(log)

    def __str__(self) -> str:
        return f"{self.what}. From the end of its log, {self.log}:\n{self._excerpt}"


class RegistryFailedError(BrokerFailedError):
    """A schema registry ended, or did not start in time. The text quotes its `log`."""


class ToolError(RemoteError):
    """One of Kafka's command-line tools failed. The text has the beginning of its output."""

    def __init__(self, tool: str, what: str, output: str) -> None:
        super().__init__(tool, what, output)
        self.tool, self.what, self.output = tool, what, output

    def __str__(self) -> str:
        # The tools write the error first, then their usage.
        beginning = "\n".join(self.output.splitlines()[:MAX_LINES])
        return f"Kafka's tool '{self.tool}' {self.what}:\n{beginning}"
