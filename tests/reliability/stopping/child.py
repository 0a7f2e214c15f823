"""A process of a query that gets orders, and is struck: it dies, or stands still for a time."""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from tests.reliability.stopping.process import Answer, Order, Stop, main

PATIENCE_SECONDS = 240.0
"""Longer than a client waits for brokers."""


Meanwhile = Callable[[list[str]], object]
"""Is called with the place of a stand-still."""


@dataclass(frozen=True, slots=True)
class Strike:
    """A death, or a stand-still for `pause_seconds`: at a statement, or so long after the order."""

    statement: int | None = None
    after_seconds: float = 0.0
    pause_seconds: float | None = None
    """None for a death."""


class Child:
    """A process that carries out one order at a time. None is the answer of a dead one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {main.__module__} import main; main()"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._told: queue.Queue[Answer | Stop | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(EOFError):
            while True:
                self._told.put(pickle.load(self._process.stdout))
        self._told.put(None)

    @property
    def is_dead(self) -> bool:
        return self._process.poll() is not None

    def ask(
        self,
        order: Order,
        strike: Strike | None = None,
        meanwhile: Meanwhile | None = None,
    ) -> Answer | None:
        """Give an order, and wait for its answer. Call `meanwhile` while it stands still."""
        if strike is not None and strike.statement is not None:
            order = replace(order, statement=strike.statement, dies=strike.pause_seconds is None)
        elif strike is not None:
            threading.Thread(target=self._strike, args=[strike], daemon=True).start()
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            pickle.dump(order, self._process.stdin)
            self._process.stdin.flush()
        while True:
            found = self._next()
            if not isinstance(found, Stop):
                return found
            assert strike is not None
            assert strike.pause_seconds is not None
            self._stand_still(found.place, strike.pause_seconds, meanwhile)

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for each in (self._process.stdin, self._process.stdout):
            assert each is not None
            with suppress(BrokenPipeError):
                each.close()

    def _next(self) -> Answer | Stop | None:
        found = self._told.get(timeout=PATIENCE_SECONDS)
        if found is None:
            assert self._process.wait() == -signal.SIGKILL, "an error ended the process"
        return found

    def _stand_still(
        self, place: list[str], pause_seconds: float, meanwhile: Meanwhile | None
    ) -> None:
        until_seconds = time.monotonic() + pause_seconds
        # Its line comes before its stop. A signal to go on that comes before that has no effect.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            if meanwhile is not None:
                meanwhile(place)
            time.sleep(max(0.0, until_seconds - time.monotonic()))
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _strike(self, strike: Strike) -> None:
        time.sleep(strike.after_seconds)
        if strike.pause_seconds is None:
            self._process.kill()
            return
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(strike.pause_seconds)
        self._process.send_signal(signal.SIGCONT)


class Children:
    """Processes for drivers and workers. Those that are left are used again."""

    def __init__(self) -> None:
        self._idle: list[Child] = []
        self._all: list[Child] = []
        self._lock = threading.Lock()

    def take(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if not child.is_dead:
                    return child
            self._all.append(Child())
            return self._all[-1]

    def put(self, *children: Child) -> None:
        with self._lock:
            self._idle += children

    def close(self) -> None:
        """Kill all processes, also those that stand still."""
        for each in self._all:
            each.close()


@contextmanager
def children() -> Iterator[Children]:
    """Yield processes, for the time of the context."""
    found = Children()
    try:
        yield found
    finally:
        found.close()
