"""One run: brokers, a registry, the cast, the nemesis, the judge."""

import re
import time
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from threading import Event, Thread

from spark_kafka_source.testing import LocalRegistry
from tools.reliability.leaders import make_whole
from tools.reliability.writing.cluster import PARTITIONS, Cluster, three_brokers
from tools.soak import rows, samples
from tools.soak.account import Account
from tools.soak.cast import DRIVERS, READER, WRITER, Cast, Diary, errors_of, parts
from tools.soak.growth import growths
from tools.soak.judge import Verdict
from tools.soak.nemesis import Nemesis
from tools.soak.outcome import Outcome

_CALM_SECONDS = 10.0, 40.0
_SAMPLE_SECONDS = 5.0
_JUDGE_SECONDS = 900.0
_PATIENCE_SECONDS = 900.0
_ERROR_LINES, _ERROR_CHARACTERS = 20, 400
_TELLS = re.compile(r"\d\d:\d\d:\d\d |[\w.]+(Error|Exception)\b")
_DIRECTORIES = re.compile(r"(?<!\S)(file:)?/\S*/")
SAMPLES = "samples.jsonl"


class Soak:
    """A pipeline on its brokers. Its files are in a directory."""

    def __init__(self, cluster: Cluster, registry: str, directory: Path, seed: int, pace: int):
        assert PARTITIONS == rows.PARTITIONS
        self._directory, self._seed, self._cluster = directory, seed, cluster
        self._diary = Diary()
        made = parts(cluster.servers, registry, directory, pace, seed)
        self.cast = Cast(made, self._diary.note)
        self._account = Account(cluster.direct, directory)
        self._stopped = Event()
        self._began = time.monotonic()

    def run(self, hours: float, chance: Random) -> Outcome:
        """Run for `hours` hours, and judge."""
        for topic in (rows.ORDERS, rows.COPIES):
            self._cluster.create_topic(topic)
        self._begin()
        sampling = Thread(target=self._sample)
        sampling.start()
        self._diary.note("runs", "all")
        began = time.monotonic()
        try:
            self._harm(hours * 3600, chance)
            found = self._finish()
        finally:
            self._stopped.set()
            sampling.join()
        return Outcome(
            seed=self._seed,
            hours=round((time.monotonic() - began) / 3600, 3),
            verdicts=found,
            nemesis=self._diary.counts(),
            growths=growths(samples.read(self._directory / SAMPLES)),
            diary=self._diary.entries,
            errors=self._errors(),
        )

    def _begin(self) -> None:
        """Start all processes, and wait until each stage has rows."""
        self.cast.start(WRITER)
        until_seconds = time.monotonic() + _PATIENCE_SECONDS
        while not self._account.end():  # The query needs the topic's schema.
            assert time.monotonic() < until_seconds, f"no row within {_PATIENCE_SECONDS} s"
            time.sleep(1)
        for name in (*DRIVERS, READER):
            self.cast.start(name)
        while not all(each.rows for each in self._account.verdicts(0).values()):
            assert time.monotonic() < until_seconds, f"not all have rows in {_PATIENCE_SECONDS} s"
            self._calm(1)

    def _harm(self, seconds: float, chance: Random) -> None:
        nemesis = Nemesis(self._cluster, self.cast, self._diary, chance)
        began = judged = time.monotonic()
        ends, half = began + seconds, began + seconds / 2
        while time.monotonic() < ends:
            if time.monotonic() > half:
                nemesis.spare_processes()
            self._calm(min(chance.uniform(*_CALM_SECONDS), ends - time.monotonic()))
            if time.monotonic() < ends:
                nemesis.strike()
            if time.monotonic() > judged + _JUDGE_SECONDS:
                self._judge("final so far")
                judged = time.monotonic()

    def _calm(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self.cast.revive()
            time.sleep(1)

    def _judge(self, what: str) -> dict[str, Verdict]:
        until = self._account.end()
        found = self._account.await_end(until, _PATIENCE_SECONDS, self.cast.revive)
        for name, verdict in found.items():
            self._diary.note(what, f"{name}: {verdict}")
        return found

    def _finish(self) -> dict[str, Verdict]:
        """End the producer, wait for the others, and judge all rows."""
        make_whole(self._cluster.kafka, rows.ORDERS, rows.COPIES)
        self.cast.end(WRITER)
        self._judge("all is read")
        for name in (*DRIVERS, READER):
            self.cast.end(name)
        return self._judge("in the end")

    def _sample(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            found = list(samples.take(self._began, self.cast.processes()))
            samples.write(found, self._directory / SAMPLES)

    def _errors(self) -> dict[str, list[str]]:
        """Return the last errors of each process."""
        found = {}
        for name in (WRITER, READER, *DRIVERS):
            path = Path(errors_of(self._directory, name))
            if path.exists():
                found[name] = told(path.read_text())[-_ERROR_LINES:]
        return found


def told(errors: str) -> list[str]:
    """Return the lines with the errors, without stacks and directories."""
    lines = [each for each in errors.splitlines() if _TELLS.match(each)]
    return [_DIRECTORIES.sub("", each)[:_ERROR_CHARACTERS] for each in lines]


def soak(hours: float, seed: int, directory: Path, pace: int) -> Outcome:
    """Make a run with `pace` rows a second."""
    with ExitStack() as stack:
        registry = stack.enter_context(LocalRegistry())
        cluster = stack.enter_context(three_brokers(Random(seed)))
        run = Soak(cluster, registry.url, directory, seed, pace)
        stack.enter_context(closing(run.cast))
        return run.run(hours, Random(seed))
