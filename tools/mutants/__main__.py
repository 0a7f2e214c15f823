"""Plant randomly drawn faults, one at a time, and list the faults that the tests miss."""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.mutants.equivalent import EQUIVALENT
from tools.mutants.faults import Fault, faults
from tools.mutants.run import PACKAGE, Copy, Verdict


def changed(root: Path, base: str) -> list[str]:
    """Return the package's modules that differ from a commit."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", base, "--", f"{PACKAGE}/*.py"]
    found = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return found.stdout.split()


def modules(root: Path, names: Iterable[str]) -> list[str]:
    """Return the given files, and all modules of the given folders."""
    found: set[Path] = set()
    for name in names:
        path = root / name
        found.update(path.rglob("*.py") if path.is_dir() else [path])
    return sorted(str(each.relative_to(root)) for each in found)


def is_equivalent(fault: Fault) -> bool:
    """Return whether the fault is listed as one that changes no behaviour."""
    before, _, after = fault.diff.partition("\n+")
    return (fault.path, before[1:].strip(), after.strip()) in EQUIVALENT


def drawn(root: Path, paths: Iterable[str], count: int, seed: int) -> list[Fault]:
    """Draw `count` faults. All kinds are equally likely, and a seed gives the same faults."""
    chance = random.Random(seed)
    by_kind: dict[str, list[Fault]] = defaultdict(list)
    for path in paths:
        for fault in faults(path, (root / path).read_text()):
            by_kind[fault.kind].append(fault)
    found: list[Fault] = []
    while by_kind and len(found) < count:
        kind = chance.choice(sorted(by_kind))
        fault = by_kind[kind].pop(chance.randrange(len(by_kind[kind])))
        if not by_kind[kind]:
            del by_kind[kind]
        if not is_equivalent(fault):
            found.append(fault)
    return found


def main(arguments: Sequence[str], root: Path) -> None:
    """Run the program. Surviving faults are no failure: a person decides about them."""
    parser = argparse.ArgumentParser(prog="tools.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="modules and folders; else what changed")
    parser.add_argument("--base", default="HEAD~20", help="the commit since which it changed")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="for a fault, beyond the usual")
    given = parser.parse_args(arguments)
    planted = drawn(
        root, modules(root, given.files or changed(root, given.base)), given.count, given.seed
    )
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(root, Path(folder))
        for number, fault in enumerate(planted, 1):
            verdict = copy.verdict(fault, given.seconds)
            where = f"{fault.path}:{fault.line} {fault.kind}"
            print(f"{number}/{len(planted)} {verdict.value}: {where}", flush=True)
            if verdict is Verdict.SURVIVED:
                survivors += 1
                print(fault.diff, flush=True)
    print(f"{survivors} of {len(planted)} survived")


if __name__ == "__main__":
    # A signal that ends this process then ends the tests as well.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main(sys.argv[1:], Path(__file__).parents[2])
