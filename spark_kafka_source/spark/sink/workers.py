"""What a Python worker's process remembers of the runs that it writes for."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.exactly_once import Names, Worker

# A process that writes for more runs than this by turns begins some of them anew.
_MOST_RUNS = 64


@dataclass(frozen=True, slots=True)
class Writing:
    """The writes of one run under one prefix."""

    client: ClientConfig
    names: Names
    run_id: str


class Workers:
    """The `Worker` of each run that this process writes for."""

    def __init__(self) -> None:
        self.forget_all()
        # The child of a fork must not have the ids of its parent.
        os.register_at_fork(after_in_child=self.forget_all)

    def forget_all(self) -> None:
        """Know no run."""
        self._lock = threading.Lock()
        self._known: dict[Writing, Worker] = {}

    def of(self, writing: Writing, make: Callable[[], Worker]) -> Worker:
        """Return the worker of a run, which `make` makes for the first task."""
        with self._lock:
            found = self._known.pop(writing, None)
        found = make() if found is None else found
        with self._lock:
            self._known[writing] = found  # The last one.
            if len(self._known) > _MOST_RUNS:
                del self._known[next(iter(self._known))]
        return found

    def forget(self, writing: Writing) -> None:
        """Begin anew in the next task of a run: after an error, brokers may say other things."""
        with self._lock:
            self._known.pop(writing, None)


workers = Workers()
