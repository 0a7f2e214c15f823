"""Checks of Spark: what the driver and an executor have, by one tiny job."""

import json
import os
import platform
from collections.abc import Callable, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Any

from spark_kafka_source.doctor.finding import Finding, ok, unknown, wrong

_PACKAGES = ("pyspark", "pyarrow", "numpy", "spark-kafka-source")
_SOCKET = "spark.python.unix.domain.socket.enabled"

Facts = Mapping[str, Any]


def check_spark() -> list[Finding]:
    """Return the findings of the active session, or of a new one."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  # Only `--spark` needs it.
    from pyspark.sql import SparkSession  # noqa: PLC0415
    from pyspark.sql.functions import udf  # noqa: PLC0415

    try:
        session = SparkSession.builder.getOrCreate()
        # The function is pickled by value: an executor without this package must answer, too.
        tells = udf(_teller(), "string", useArrow=False)  # Arrow would ask for pandas here.
        told = session.range(1).select(tells()).first()
        socket = session.conf.get(_SOCKET, None)
    except (PySparkException, ImportError, RuntimeError) as error:
        remedy = "Start Spark; executors need the driver's version of Python"
        found = str(error).strip().splitlines()[0][:200]
        return [wrong("spark", "session", found, remedy, "PYSPARK_PYTHON")]
    text = told[0] if told is not None else "{}"
    return [*judged(facts(), json.loads(text)), _socket(socket)]


def judged(driver: Facts, executor: Facts) -> list[Finding]:
    """Return the findings for what the driver and an executor have."""
    return [
        _python(str(driver.get("python")), str(executor.get("python"))),
        *(_package(each, driver.get(each), executor.get(each)) for each in _PACKAGES),
        _fast(executor),
    ]


def facts() -> dict[str, Any]:
    """Return versions, and whether numba's cache can be written, of this process."""
    return dict(json.loads(_teller()()))


def _teller() -> Callable[[], str]:
    packages = _PACKAGES

    def told() -> str:
        found: dict[str, Any] = {"python": platform.python_version()}
        for each in packages:
            try:
                found[each] = metadata.version(each)
            except metadata.PackageNotFoundError:
                found[each] = None
        package = util.find_spec("spark_kafka_source")
        beside = Path(package.origin).parent if package and package.origin else Path.home()
        home = Path.home() / ".cache"  # Where numba goes if it may not write beside the code.
        given = os.environ.get("NUMBA_CACHE_DIR")
        places = [Path(given)] if given else [beside, home]
        there = next((each for each in places if os.access(each, os.W_OK)), None)
        found["numba"] = util.find_spec("numba") is not None
        found["cache"], found["writable"] = str(there or places[0]), there is not None
        return json.dumps(found)

    return told


def _python(driver: str, executor: str) -> Finding:
    if driver.split(".")[:2] == executor.split(".")[:2]:
        return ok("spark", "Python", f"driver {driver}, executor {executor}")
    found = f"driver {driver}, executor {executor}"
    remedy = "Give executors the driver's Python"
    return wrong("spark", "Python", found, remedy, "PYSPARK_PYTHON")


def _package(name: str, driver: str | None, executor: str | None) -> Finding:
    found = f"driver {driver or 'none'}, executor {executor or 'none'}"
    if executor is not None and driver == executor:
        return ok("spark", name, found)
    remedy = f"Install the driver's version of {name} for the executors' Python"
    return wrong("spark", name, found, remedy, "PYSPARK_PYTHON")


def _fast(executor: Facts) -> Finding:
    if not executor.get("numba"):
        return unknown("spark", "fast", "numba is not installed there: see the extra 'fast'")
    where = str(executor.get("cache"))
    if executor.get("writable"):
        return ok("spark", "fast", f"numba's cache {where} can be written")
    found = f"numba's cache {where} cannot be written: each process compiles anew"
    return wrong("spark", "fast", found, "Give a directory that can be written", "NUMBA_CACHE_DIR")


def _socket(value: str | None) -> Finding:
    return ok("spark", "Unix socket", f"{_SOCKET} is {value or 'not set'}")
