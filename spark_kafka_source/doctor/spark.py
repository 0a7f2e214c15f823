"""Checks of Spark: what the driver and the executors have, by one job of tiny tasks."""

import json
import os
import platform
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_kafka_source.doctor.finding import Finding, ok, unknown, wrong

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("pyspark", "pyarrow", "numpy", "spark-kafka-source")
_SOCKET = "spark.python.unix.domain.socket.enabled"
_TASKS = 64
"""Spark spreads them over its executors. On a larger cluster some executors get none."""

# Why a Python worker did not run, in Spark's words or in those of Python or the system.
_CAUSE = re.compile(
    r"Cannot run program .*|Python in worker has different version.*|.*PYTHON_VERSION_MISMATCH.*"
    r"|(?:ModuleNotFoundError|ImportError): .*|Python worker (?:failed|exited|did not) .*"
)

Facts = Mapping[str, Any]


def check_spark(timeout_ms: int) -> list[Finding]:
    """Return the findings of the active session, or of a new one.

    A session that does not start, or whose job gets no core until the timeout, is wrong.
    """
    findings: list[Finding] = []

    def check() -> None:
        findings.extend(_of_session())

    job = threading.Thread(target=check, name="doctor-spark", daemon=True)
    job.start()
    job.join(timeout_ms / 1000)
    return findings or [_too_late(timeout_ms)]


def _of_session() -> list[Finding]:
    """Return the findings of a session. Py4J and the system have errors that are not Spark's."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  # Only `--spark` needs it.

        session = SparkSession.builder.getOrCreate()
        return [*judged(facts(), _told(session)), _socket(session.conf.get(_SOCKET, None))]
    except Exception as error:
        return [_failure(str(error) or type(error).__name__)]


def _failure(text: str) -> Finding:
    """Return the finding for an error of Spark: its cause is deep in a Java stack trace."""
    if "JAVA_GATEWAY_EXITED" in text:
        remedy = "Install Java 17 or newer, and let it be found"
        return wrong("spark", "session", _first_line(text), remedy, "JAVA_HOME")
    if "spark-submit" in text:
        return wrong("spark", "session", _first_line(text), "Correct or unset it", "SPARK_HOME")
    cause = _CAUSE.search(text)
    found = cause[0][:200] if cause else _first_line(text)
    remedy = "Give executors a Python of the driver's version, which has this package"
    return wrong("spark", "session", found, remedy, "PYSPARK_PYTHON")


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200]


def _told(session: "SparkSession") -> list[Facts]:
    """Return the facts of each executor that has run a task."""
    from pyspark.sql.functions import udf  # noqa: PLC0415

    # The function is pickled by value: an executor without this package must answer, too.
    tells = udf(_teller(), "string", useArrow=False)  # Arrow would ask for pandas here.
    rows = session.range(0, _TASKS, 1, _TASKS).select(tells()).collect()
    return [json.loads(text) for text in sorted({str(row[0]) for row in rows})]


def _too_late(timeout_ms: int) -> Finding:
    found = f"no job has ended within {timeout_ms / 1000:g} s"
    remedy = "Give the session cores: other applications may hold them all, or a queue is full"
    return wrong("spark", "session", found, remedy, "--timeout")


def judged(driver: Facts, executors: Sequence[Facts]) -> list[Finding]:
    """Return the findings for what the driver and the executors have."""
    hosts = {str(executor.get("host")) for executor in executors}
    return [
        ok("spark", "executors", f"{_TASKS} tasks ran on hosts: {len(hosts)}"),
        _python(str(driver.get("python")), _hosts_by_value(executors, "python")),
        *(_package(name, driver.get(name), _hosts_by_value(executors, name)) for name in _PACKAGES),
        *dict.fromkeys(map(_fast, executors)),
    ]


def _hosts_by_value(executors: Sequence[Facts], name: str) -> dict[str | None, str]:
    """Return for each value that executors have one of their hosts."""
    return {executor.get(name): str(executor.get("host")) for executor in executors}


def facts() -> dict[str, Any]:
    """Return the host, versions, and whether numba's cache can be written, of this process."""
    return dict(json.loads(_teller()()))


def _teller() -> Callable[[], str]:
    packages = _PACKAGES

    def told() -> str:
        facts: dict[str, Any] = {"host": platform.node()}
        facts["python"] = platform.python_version()
        for name in packages:
            try:
                facts[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                facts[name] = None
        package = util.find_spec("spark_kafka_source")
        beside = Path(package.origin).parent if package and package.origin else Path.home()
        home = Path.home() / ".cache"  # Where numba goes if it may not write beside the code.
        given = os.environ.get("NUMBA_CACHE_DIR")
        places = [Path(given)] if given else [beside, home]
        there = next((place for place in places if os.access(place, os.W_OK)), None)
        facts["numba"] = util.find_spec("numba") is not None
        facts["cache"], facts["writable"] = str(there or places[0]), there is not None
        return json.dumps(facts)

    return told


def _python(driver: str, executors: Mapping[str | None, str]) -> Finding:
    versions = _beside(driver, executors)
    if all(str(version).split(".")[:2] == driver.split(".")[:2] for version in executors):
        return ok("spark", "Python", versions)
    remedy = "Give executors the driver's Python"
    return wrong("spark", "Python", versions, remedy, "PYSPARK_PYTHON")


def _package(name: str, driver: str | None, executors: Mapping[str | None, str]) -> Finding:
    versions = _beside(driver, executors)
    if driver is not None and set(executors) == {driver}:
        return ok("spark", name, versions)
    remedy = f"Install the driver's version of {name} for the executors' Python"
    return wrong("spark", name, versions, remedy, "PYSPARK_PYTHON")


def _beside(driver: str | None, executors: Mapping[str | None, str]) -> str:
    """Return the driver's and the executors' values. Name a host of each if executors differ."""
    if len(executors) == 1:
        (value,) = executors
        return f"driver {driver or 'none'}, executors {value or 'none'}"
    shown = ", ".join(f"{value or 'none'} on {host}" for value, host in executors.items())
    return f"driver {driver or 'none'}, executors {shown}"


def _fast(executor: Facts) -> Finding:
    if not executor.get("numba"):
        return unknown("spark", "fast", "numba is not installed there: see the extra 'fast'")
    where = str(executor.get("cache"))
    if executor.get("writable"):
        return ok("spark", "fast", f"numba's cache {where} can be written")
    host = executor.get("host")
    found = f"numba's cache {where} on {host} cannot be written: each process compiles anew"
    return wrong("spark", "fast", found, "Give a directory that can be written", "NUMBA_CACHE_DIR")


def _socket(value: str | None) -> Finding:
    return ok("spark", "Unix socket", f"{_SOCKET} is {value or 'not set'}")
