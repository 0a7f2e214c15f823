"""Demos as processes, their output, and how they end."""

import subprocess
from contextlib import AbstractContextManager

from tests.testing.processes import running_python

# The longest demo takes a minute. A shared machine may be ten times as slow.
TIMEOUT_SECONDS = 580
OTHER_SPARK = {
    "SPARK_HOME": "/no/such/spark",
    "SPARK_CONF_DIR": "/no/such/conf",
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
    "PYSPARK_PYTHON": "/no/such/python",
    "PYSPARK_DRIVER_PYTHON": "/no/such/python",
}
"""Variables of a machine that has a Spark of its own."""


def started(*words: str, **environment: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Run Python for as long as a demo may take."""
    return running_python(*words, timeout_seconds=TIMEOUT_SECONDS, **environment)


def read_until(process: "subprocess.Popen[str]", word: str) -> str:
    """Return what the process says, up to the line with this word."""
    assert process.stdout is not None
    shown = ""
    while word not in shown:
        line = process.stdout.readline()
        assert line, shown
        shown += line
    return shown
