"""Import time of this package in a worker that has already imported pyspark and pyarrow.

python -m tools.benchmarks.cold [--runs N]
"""

import argparse
import os
import statistics
import subprocess
import sys

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_BEFORE = "import pyspark.sql.datasource, pyspark.sql.types, pyarrow, pyspark.sql.pandas.types"
STEPS = {
    "the options": "spark.data_source",
    "a batch": "spark.source.batch",
    "a stream": "spark.source.stream",
}
"""Module of the package that each step of a query imports. A task imports it as well."""


def main() -> None:
    runs = _arguments().runs
    for step, module in STEPS.items():
        found = statistics.median(measure(module, runs))
        print(f"{step}: {found:.0f} ms to import, over pyspark's own")


def measure(module: str, runs: int) -> list[float]:
    """Return the milliseconds of each run. Each run has its own process."""
    program = f"""
{_BEFORE}
import time
started = time.perf_counter()
import spark_kafka_source.{module}
print((time.perf_counter() - started) * 1000)
"""
    found = []
    for _ in range(runs + 1):
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            timeout=120,
            env=_with_bytecode(),
        )
        found.append(float(done.stdout))
    return found[1:]


def _with_bytecode() -> dict[str, str]:
    """Return an environment that allows bytecode files. The first run writes them, uncounted."""
    return {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    return parser.parse_args()


if __name__ == "__main__":
    main()
