"""Running the tests that mirror a module, with a fault planted in a copy of the tree."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from enum import Enum
from itertools import chain
from pathlib import Path

from tools.mutants.faults import Fault

PACKAGE, TESTS = "spark_kafka_source", "tests"

_LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "notebooks", "__pycache__", "corpus")
_NO_TESTS = 5  # pytest's exit code if it found no tests.


class Verdict(Enum):
    """Result of the tests for a fault."""

    CAUGHT = "caught"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


def matching(root: Path, path: str) -> list[list[str]]:
    """Return the tests of a module: first the tests that name it, then the rest of its package's.

    `tests/a` mirrors `spark_kafka_source/a/b.py`. The test files directly in `tests` mirror the
    modules outside of packages.
    """
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    folder = Path(TESTS, *Path(path).parts[1:-1])
    while not (root / folder).is_dir():
        folder = folder.parent
    is_outside = folder == Path(TESTS)
    all_of_it = sorted((root / folder).glob("test_*.py" if is_outside else "**/test_*.py"))
    parent, _, stem = module.rpartition(".")
    names = re.compile(
        rf"\b{re.escape(module)}\b|from {re.escape(parent)} import[^\n]*\b{stem}\b|test_{stem}"
    )
    near = [each for each in all_of_it if names.search(f"{each.read_text()} {each.name}")]
    near.sort(key=lambda each: not each.stem.startswith(f"test_{stem}"))
    steps = [near, [each for each in all_of_it if each not in near]]
    return [[str(each.relative_to(root)) for each in step] for step in steps if step]


class Copy:
    """A copy of the tree for one fault at a time. The original tree does not change."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder / "tree"
        shutil.copytree(root, self._folder, ignore=_LEFT_OUT)
        # Python compares file times in seconds, so it would reuse the bytecode of another fault.
        environment = {"PYTHONPATH": str(self._folder), "PYTHONDONTWRITEBYTECODE": "1"}
        self._environment = os.environ | environment
        self._seconds: dict[str, float] = {}

    def verdict(self, fault: Fault, limit_seconds: float) -> Verdict:
        """Run the tests with the fault. `limit_seconds` adds to their time without a fault."""
        steps = matching(self._folder, fault.path)
        usual_seconds = self._usual_seconds(sorted(chain.from_iterable(steps)), limit_seconds)
        module = self._folder / fault.path
        module.write_text(fault.after)
        try:
            for tests in steps:
                if (passed := self._pass(tests, limit_seconds + usual_seconds)) is not True:
                    return Verdict.TIMED_OUT if passed is None else Verdict.CAUGHT
            return Verdict.SURVIVED
        finally:
            module.write_text(fault.before)

    def _usual_seconds(self, tests: Sequence[str], limit_seconds: float) -> float:
        """Return the tests' time without a fault. Raise an error if a test fails then."""
        key = " ".join(tests)
        if key not in self._seconds:
            began_seconds = time.monotonic()
            if not self._pass(tests, 10 * limit_seconds):
                raise RuntimeError(f"without a fault these fail: {key}")
            self._seconds[key] = time.monotonic() - began_seconds
        return self._seconds[key]

    def _pass(self, tests: Sequence[str], limit_seconds: float) -> bool | None:
        """Return whether all tests pass; None if they do not end in time."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(limit_seconds) in (0, _NO_TESTS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:  # Kill pytest and its children.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
