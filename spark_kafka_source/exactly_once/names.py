"""The transactional ids of one query's writes, and the groups that hold its decisions."""

import re
from dataclasses import dataclass

from spark_kafka_source.errors import ConfigurationError

PREFIX_OPTION = "transactionalIdPrefix"

MOST_TASKS = 1 << 32
"""The numbers of tasks and of attempts are below this."""

_CONTROL = "control"
_ABORTED = "aborted"
_OF_QUERIES = "pykafka-"
# A prefix has no dot, so no prefix is the beginning of another one's ids.
_PREFIX = "[A-Za-z0-9_-]{1,150}"
# Ids of other programs are parsed, too, and may have any length.
_NUMBER = r"(?:0|[1-9][0-9]{0,9})"
_TASK_ID = (
    rf"(?P<prefix>{_PREFIX})\.(?P<space>[^.]{{1,500}})"
    rf"\.(?P<task>{_NUMBER})\.(?P<attempt>{_NUMBER})"
)


@dataclass(frozen=True, slots=True)
class TaskId:
    """The parts of a transactional id of a task's attempt."""

    prefix: str
    space: str
    """The id of the query's run, or of a plain batch's write."""
    task: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.prefix}.{self.space}.{self.task}.{self.attempt}"

    @classmethod
    def parse(cls, transactional_id: str) -> "TaskId | None":
        """Return the parts of an id; None for an id that is not a task's."""
        matched = re.fullmatch(_TASK_ID, transactional_id)
        if matched is None:
            return None
        task, attempt = int(matched["task"]), int(matched["attempt"])
        if max(task, attempt) >= MOST_TASKS:
            return None
        return cls(matched["prefix"], matched["space"], task, attempt)


@dataclass(frozen=True, slots=True)
class Names:
    """All names that follow from a prefix, which belongs to a single query."""

    prefix: str

    @property
    def control_id(self) -> str:
        """The transactional id of the decisions. It fences other drivers."""
        return f"{self.prefix}.{_CONTROL}"

    def group_id(self, part: int) -> str:
        """Return the group for a part of a decision; the group of the first is the prefix."""
        return self.prefix if part == 0 else f"{self.prefix}.{part}"

    def task_id(self, space: str, task: int, attempt: int) -> TaskId:
        """Return the transactional id of a task's attempt."""
        return TaskId(self.prefix, space.replace(".", "_"), task, attempt)

    def aborted_id(self, run_id: str) -> str:
        """Return the transactional id that is known to the brokers once the run is aborted."""
        return f"{self.prefix}.{run_id.replace('.', '_')}.{_ABORTED}"

    def is_task_id(self, transactional_id: str) -> bool:
        """Whether this is the id of a task's attempt under this prefix."""
        task_id = TaskId.parse(transactional_id)
        return task_id is not None and task_id.prefix == self.prefix

    def is_in(self, transactional_id: str, space: str) -> bool:
        """Whether this is the id of a task's attempt in this space."""
        task_id = TaskId.parse(transactional_id)
        return task_id == self.task_id(space, task_id.task, task_id.attempt) if task_id else False


def checked_prefix(text: str) -> str:
    """Return the user's prefix without outer spaces. Raises `ConfigurationError` for a bad one."""
    prefix = text.strip()
    if not re.fullmatch(_PREFIX, prefix):
        expected = "Give at most 150 letters, digits, '-' and '_', and no dot"
        raise ConfigurationError(PREFIX_OPTION, "found {}", expected, prefix)
    return prefix


def prefix_of_query(query_id: str) -> str:
    """Return the default prefix of a query: the same after each restart."""
    return f"{_OF_QUERIES}{query_id}"


def query_of_prefix(prefix: str) -> str | None:
    """Return the query id in a default prefix; None for another prefix."""
    return prefix.removeprefix(_OF_QUERIES) if prefix.startswith(_OF_QUERIES) else None
