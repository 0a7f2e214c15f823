"""A run of one target in its own process, by one of two engines. `__main__` starts it.

`guided` is libFuzzer (atheris). It keeps inputs that reach new lines of the package, and changes
them further. `blind` only changes existing inputs, several times as fast.
"""

import argparse
import contextlib
import json
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tools.fuzz.judge import MOST_SECONDS, Finding, finding

if TYPE_CHECKING:  # Instrument the package before its first import.
    from tools.fuzz.targets import Target

_MOST_MEGABYTES = 3072
_BETWEEN_LOOKS = 64


class Run:
    """Counts of one process, and the folder of its findings."""

    def __init__(self, target: "Target", folder: Path) -> None:
        self.target, self.folder = target, folder
        self.executions = 0
        self._seen: set[tuple[str, str]] = set()

    def one(self, data: bytes) -> None:
        """Try one input. Keep the first finding of each kind."""
        self.executions += 1
        found = finding(self.target.name, self.target.function, data)
        if found and (kind := (found.error.partition(":")[0], found.where)) not in self._seen:
            self._seen.add(kind)
            self._keep(found)

    def _keep(self, found: Finding) -> None:
        (self.folder / "findings" / found.name).write_bytes(found.data)
        row = {key: value for key, value in asdict(found).items() if key != "data"}
        with (self.folder / "findings.jsonl").open("a") as file:
            file.write(json.dumps(row | {"file": found.name}) + "\n")


_KERNELS = ("records.kernels", "values.avro.kernels", "values.column_kernels")


def _target(name: str) -> "Target":
    found: Target = import_module("tools.fuzz.targets").TARGETS[name]
    return found


def guided(name: str, folder: Path, seconds: int, seed: int) -> None:
    """Run libFuzzer. This ends the process."""
    atheris = import_module("atheris")
    # numba compiles the kernels from their bytecode, so it must not be instrumented.
    kernels = [f"spark_kafka_source.{name}" for name in _KERNELS]
    with atheris.instrument_imports(include=["spark_kafka_source"], exclude=kernels):
        target = _target(name)
    run, corpus = Run(target, folder), folder / "corpus"
    arguments = [
        sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-seed={seed}",
        f"-timeout={2 * MOST_SECONDS}", f"-rss_limit_mb={_MOST_MEGABYTES}",
        f"-max_len={target.most_bytes}", f"-artifact_prefix={folder}/findings/{name}-",
        "-len_control=0", "-print_final_stats=1",
    ]  # fmt: skip
    options: dict[str, Any] = {}
    if target.knows_records:
        options["custom_mutator"] = _own_and_other_changes(atheris, target)
    atheris.Setup(arguments, run.one, **options)
    run.one(b"")  # Let numba compile kernels before the clock runs.
    atheris.Fuzz()


def _own_and_other_changes(atheris: Any, target: "Target") -> Any:
    def change(data: bytes, most_bytes: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            return target.changed(data, random)
        changed: bytes = atheris.Mutate(data, most_bytes)
        return changed

    return change


def blind(name: str, folder: Path, seconds: int, seed: int) -> None:
    """Change the seeds and the guided engine's corpus."""
    target, random = _target(name), Random(seed)
    run = Run(target, folder)
    known = [path.read_bytes() for path in sorted((folder / "corpus").iterdir())]

    end_seconds = time.monotonic() + seconds
    while time.monotonic() < end_seconds:
        for _ in range(_BETWEEN_LOOKS):
            run.one(target.changed(random.choice(known), random))
    sys.stderr.write(f"stat::number_of_executed_units: {run.executions}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=["guided", "blind"])
    parser.add_argument("target")
    parser.add_argument("folder", type=Path)
    parser.add_argument("seconds", type=int)
    parser.add_argument("seed", type=int)
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        engine = {"guided": guided, "blind": blind}[given.engine]
        engine(given.target, given.folder, given.seconds, given.seed)


if __name__ == "__main__":
    main()
