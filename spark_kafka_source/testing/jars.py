"""Jars from Maven Central, by the Ivy that PySpark ships; kept, so that each is downloaded once.

Ivy's command line: https://ant.apache.org/ivy/history/2.5.3/standalone.html
"""

import fcntl
import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing.child import Child
from spark_kafka_source.testing.errors import JarsError, JavaError, tail
from spark_kafka_source.testing.java import find_java

KAFKA_VERSION = "4.3.1"
"""The newest Kafka whose broker and command-line tools are both published."""

CACHE_VARIABLE = "SPARK_KAFKA_SOURCE_CACHE"
DOWNLOAD_TIMEOUT_MS = 600_000
ATTEMPTS = 2

_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)")
_COMPLAINT = re.compile(r"^\s*::\s+\S+#\S+;\S+.*$", re.MULTILINE)
_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
_PEER = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    # The provider of 4.2.0 is not to be had.
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)

_log = logging.getLogger(__name__)


def kafka_jars(version: str = KAFKA_VERSION) -> list[Path]:
    """The jars of Kafka's broker, clients and command-line tools, with all that they need."""
    return resolve(
        [
            f"org.apache.kafka:kafka_2.13:{version}",
            f"org.apache.kafka:kafka-tools:{version}",
            # Kafka logs through slf4j 1: without a binding to it a broker has no log.
            "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
        ]
    )


def peer_jars() -> list[Path]:
    """The jars of Spark's own Kafka connector, for `spark.jars`: without what Spark has already."""
    return resolve(_PEER, transitive=False)


def resolve(coordinates: Sequence[str], *, transitive: bool = True) -> list[Path]:
    """The jars of some Maven coordinates, `organisation:name:revision`, sorted by their names.

    They are downloaded once, with all that they depend on unless `transitive` is false, into a
    folder of `cache_directory()`; two processes that want the same at once download it once.
    Raises `ConfigurationError` for what is no coordinate, `JavaError` without a fit Java, and
    `JarsError` where the download failed twice.

        resolve(["org.apache.kafka:kafka-clients:4.3.1"], transitive=False)
    """
    module = _ivy_module(coordinates, transitive)
    cache = cache_directory()
    folder = cache / "jars" / hashlib.sha256(module.encode()).hexdigest()[:16]
    if not folder.exists():
        with _lock(cache):
            # Another process may have downloaded it while this one waited.
            if not folder.exists():
                _download(coordinates, module, cache, folder)
    return sorted(folder.glob("*.jar"))


def cache_directory() -> Path:
    """`SPARK_KAFKA_SOURCE_CACHE`, else `spark-kafka-source` in the platform's folder for caches."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "spark-kafka-source"
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "spark-kafka-source"


def _ivy_module(coordinates: Sequence[str], transitive: bool) -> str:
    dependencies = "\n".join(_ivy_dependency(each, transitive) for each in coordinates)
    return (
        '<ivy-module version="2.0">\n'
        '<info organisation="spark-kafka-source" module="jars"/>\n'
        f"<dependencies>\n{dependencies}\n</dependencies>\n"
        "</ivy-module>\n"
    )


def _ivy_dependency(coordinate: str, transitive: bool) -> str:
    parts = _COORDINATE.fullmatch(coordinate)
    if not parts:
        raise ConfigurationError(
            "coordinates", f"'{coordinate}'", "Give organisation:name:revision"
        )
    return (
        f'<dependency org="{parts[1]}" name="{parts[2]}" rev="{parts[3]}"'
        f' conf="default" transitive="{str(transitive).lower()}"/>'
    )


@contextmanager
def _lock(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        # The kernel lets go of it should this process be killed.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(coordinates: Sequence[str], module: str, cache: Path, folder: Path) -> None:
    # Only the holder of the lock is here: what lies there was left by one that was killed.
    for left in cache.glob("partial-*"):
        shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
    (partial / "ivy.xml").write_text(module)
    _log.warning("Downloading %s, once, to %s ...", ", ".join(coordinates), folder)
    if not any(_run_ivy(cache, partial) for _ in range(ATTEMPTS)):
        raise JarsError(coordinates, _complaints(partial / "ivy.log"))
    folder.parent.mkdir(exist_ok=True)
    partial.rename(folder)


def _run_ivy(cache: Path, partial: Path) -> bool:
    command = [find_java(), "-jar", str(_ivy_jar()), "-cache", str(cache / "ivy")]
    command += ["-ivy", str(partial / "ivy.xml"), "-confs", "default"]
    command += ["-retrieve", str(partial / _PATTERN)]
    log = partial / "ivy.log"
    log.unlink(missing_ok=True)
    with closing(Child(command, output=log, errors=log)) as ivy:
        return ivy.wait(DOWNLOAD_TIMEOUT_MS) == 0


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [jar for folder in folders for jar in Path(folder, "jars").glob("ivy-*.jar")]
    if not found:
        raise JavaError(f"No ivy-*.jar in the jars of PySpark, looked for in {folders}")
    return found[0]


def _complaints(log: Path) -> str:
    """What Ivy says of the modules and files it could not get; else the end of its log."""
    text = log.read_text(errors="replace") if log.exists() else ""
    complaints = dict.fromkeys(line.strip() for line in _COMPLAINT.findall(text))
    return "\n".join(complaints) or tail(text)
