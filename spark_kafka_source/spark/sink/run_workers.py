"""Workers of exactly-once writes, kept by a Python process for the last run of each prefix."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.exactly_once import Names, Worker

# A process that writes under more prefixes than this by turns begins some of them anew.
_MOST_PREFIXES = 64


@dataclass(frozen=True, slots=True)
class Writing:
    """The writes of one run under one prefix."""

    client: ClientConfig
    names: Names
    run_id: str


class RunWorkers:
    """The `Worker` of each prefix that this process writes under, for its last run."""

    def __init__(self) -> None:
        self.forget_all()
        # The child of a fork must not have the ids of its parent.
        os.register_at_fork(after_in_child=self.forget_all)

    def forget_all(self) -> None:
        """Know no run."""
        self._lock = threading.Lock()
        self._known: dict[tuple[ClientConfig, Names], tuple[str, Worker]] = {}

    def of(self, writing: Writing, make: Callable[[], Worker]) -> Worker:
        """Return the worker of a run, which `make` makes for the first task.

        By then the former run's worker is gone, so that its ids can be used again.
        """
        key = writing.client, writing.names
        known = self._taken(writing)
        worker = make() if known is None else known
        with self._lock:
            self._known[key] = writing.run_id, worker  # The last one.
            if len(self._known) > _MOST_PREFIXES:
                del self._known[next(iter(self._known))]
        return worker

    def forget(self, writing: Writing) -> None:
        """Begin anew in the next task of a run: after an error, brokers may say other things."""
        self._taken(writing)

    def _taken(self, writing: Writing) -> Worker | None:
        """Take the worker of a prefix away. Return it if it is of this run."""
        with self._lock:
            run_id, worker = self._known.pop((writing.client, writing.names), ("", None))
        return worker if run_id == writing.run_id else None


run_workers = RunWorkers()
