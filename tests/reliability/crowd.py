"""Members of one group, each in a process, that join, freeze, leave and die at random."""

import multiprocessing
import os
import signal
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from tests.reliability.member import SESSION_MS, Orders, live
from tests.reliability.timeline import Life

# Processes start at once if they are forked from one that has imported all modules.
_PROCESSES = multiprocessing.get_context("forkserver")
_COMMITS = ("sync", "async", "auto", "mixed")
_END_SECONDS = 60.0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Crowd:
    """At most `most` members of one group. `theirs` is the chance of a confluent-kafka member."""

    def __init__(
        self,
        made_of: tuple[str, str, tuple[str, ...], str],
        directory: Path,
        chance: Random,
        *,
        most: int,
        theirs: float = 0.25,
    ) -> None:
        """Create it. `made_of`: servers, group, topics and protocol, as in `Orders`."""
        _PROCESSES.set_forkserver_preload([live.__module__])
        self._made_of = made_of
        self._directory, self._chance = directory, chance
        self._most, self._theirs = most, theirs
        self._running: dict[str, BaseProcess] = {}
        self._ended: dict[str, BaseProcess] = {}
        self._thaws: list[tuple[float, str]] = []
        self._frozen: dict[str, list[tuple[int, int]]] = {}
        self._killed: set[str] = set()
        self._closing: set[str] = set()
        self.done = dict.fromkeys(("joined", "killed", "frozen", "closed", "closed at once"), 0)
        directory.mkdir(exist_ok=True)

    def join(self, *, leaves_early: bool = False, is_ours: bool | None = None) -> str:
        name = f"m{len(self._running) + len(self._ended)}"
        chance = self._chance
        orders = Orders(
            *self._made_of,
            name=name,
            path=str(self._directory / f"{name}.jsonl"),
            seed=chance.getrandbits(32),
            commits=chance.choice(_COMMITS),
            is_ours=chance.random() >= self._theirs if is_ours is None else is_ours,
            leaves_early=leaves_early,
        )
        process = _PROCESSES.Process(target=live, args=(orders,), daemon=True)
        process.start()
        self._running[name] = process
        self.done["joined"] += 1
        return name

    def something(self) -> None:
        """Do one random thing to the group, and thaw members that were frozen long enough."""
        self._thaw()
        for name in [each for each in self._running if not self._running[each].is_alive()]:
            self._ended[name] = self._running.pop(name)
        names = [each for each in self._running if self._is_free(each)]
        what = self._chance.choice([self._kill, self._freeze, self._close, self._close_at_once])
        if len(self._running) < self._most and (len(names) < 3 or self._chance.random() < 0.5):
            self.join(leaves_early=self._chance.random() < 0.15)
        elif len(names) > 2:
            what(self._chance.choice(names))

    def _is_free(self, name: str) -> bool:
        return name not in self._closing and all(each != name for _, each in self._thaws)

    def _kill(self, name: str) -> None:
        self._signal(name, signal.SIGKILL)
        self._killed.add(name)
        self._closing.add(name)
        self.done["killed"] += 1

    def _freeze(self, name: str) -> None:
        """Freeze a member, for longer than its session or for less."""
        seconds = self._chance.choice([0.5, 1.5]) * SESSION_MS / 1000 + self._chance.random()
        self._frozen.setdefault(name, []).append((_now_ms(), 0))
        self._signal(name, signal.SIGSTOP)
        self._thaws.append((time.monotonic() + seconds, name))
        self.done["frozen"] += 1

    def _close(self, name: str) -> None:
        self._signal(name, signal.SIGTERM)
        self._closing.add(name)
        self.done["closed"] += 1

    def _close_at_once(self, name: str) -> None:
        """Close a member in the midst of a rebalance, since another one has just joined."""
        if len(self._running) < self._most:
            self.join()
        time.sleep(self._chance.uniform(0, 0.5))
        self._close(name)
        self.done["closed"] -= 1
        self.done["closed at once"] += 1

    def _thaw(self, *, all_of_them: bool = False) -> None:
        now = time.monotonic()
        for each in list(self._thaws):
            at, name = each
            if all_of_them or at <= now:
                self._thaws.remove(each)
                self._signal(name, signal.SIGCONT)
                since_ms, _ = self._frozen[name][-1]
                self._frozen[name][-1] = since_ms, _now_ms()

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self._running[name].pid if name in self._running else None
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def calm(self) -> None:
        """Thaw all members, and add one that stays."""
        self._thaw(all_of_them=True)
        self.join(is_ours=True)

    def lives(self) -> list[Life]:
        """Return what each member has done so far."""
        found = []
        for name in [*self._ended, *self._running]:
            life = Life.read(self._directory / f"{name}.jsonl")
            life.is_dead, life.frozen = name in self._killed, self._frozen.get(name, [])
            found.append(life)
        return found

    def close(self) -> list[str]:
        """Close all members. Return the faults of those that do not end, or end badly."""
        for name in self._running.keys() - self._closing:  # A second signal could end an exit.
            self._signal(name, signal.SIGTERM)
        ends = time.monotonic() + _END_SECONDS
        wrong = []
        for name, process in [*self._running.items(), *self._ended.items()]:
            process.join(max(0.0, ends - time.monotonic()))
            expected = {0}
            if name in self._killed:
                expected.add(-signal.SIGKILL)
            if not self._has_begun(name):  # It had no handler for this signal yet.
                expected.add(-signal.SIGTERM)
            if process.exitcode not in expected:
                wrong.append(f"{name} ended with {process.exitcode}")
            process.kill()
        return wrong

    def _has_begun(self, name: str) -> bool:
        diary = self._directory / f"{name}.jsonl"
        return diary.exists() and '"begins"' in diary.read_text()
