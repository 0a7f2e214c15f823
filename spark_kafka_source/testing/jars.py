"""Files from Maven Central, downloaded once by the Ivy that PySpark ships.

Ivy's command line: https://ant.apache.org/ivy/history/2.5.3/standalone.html
"""

import fcntl
import hashlib
import logging
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.testing.child import Child
from spark_kafka_source.testing.downloads import Meter, Progress
from spark_kafka_source.testing.errors import JarsError, JavaError, tail
from spark_kafka_source.testing.java import find_java

KAFKA_VERSION = "4.4.0"
"""The newest Kafka whose broker and command-line tools are both published."""

CACHE_VARIABLE = "SPARK_KAFKA_SOURCE_CACHE"
DOWNLOAD_TIMEOUT_MS = 600_000
ATTEMPTS = 2

_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?")
_COMPLAINT = re.compile(r"^\s*::\s+\S+#\S+;\S+.*$", re.MULTILINE)
_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
_PEER = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    # There is no 4.2.0 of the provider.
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)

_OF_MAVEN = ' xmlns:m="http://ant.apache.org/ivy/maven"'
# The resolver is Maven Central, as by default. One archive needs no POM.
_WITHOUT_POMS = """\
<ivysettings>
<settings defaultResolver="public"/>
<resolvers><ibiblio name="public" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""

_KAFKA_BYTES = 64_000_000
"""About what Ivy downloads for a Kafka. It does not tell before the download."""
_LOOK_MS = 200

_log = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class _Order:
    """An order for Ivy. `finish` completes the folder of its download."""

    coordinates: Sequence[str]
    module: str
    settings: str = ""
    finish: Callable[[Path], None] = lambda _: None
    expected_bytes: int = 0
    progress: Progress | None = None


def kafka_jars(version: str = KAFKA_VERSION, *, progress: Progress | None = None) -> list[Path]:
    """Return the jars of Kafka's broker, clients and tools, with their dependencies.

    `progress` is called some times a second during a download, with the bytes that have come and
    about how many there will be.
    """
    coordinates = [
        f"org.apache.kafka:kafka_2.13:{version}",
        f"org.apache.kafka:kafka-tools:{version}",
        # Kafka logs through slf4j 1: without a binding for it a broker has no log.
        "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
    ]
    return _resolved(coordinates, transitive=True, expected_bytes=_KAFKA_BYTES, progress=progress)


def peer_jars() -> list[Path]:
    """Return the jars of Spark's own Kafka connector that Spark lacks, for `spark.jars`."""
    return resolve(_PEER, transitive=False)


def resolve(coordinates: Sequence[str], *, transitive: bool = True) -> list[Path]:
    """Return the jars of Maven coordinates (`organisation:name:revision`), sorted by name.

    A coordinate may end with a classifier: `organisation:name:revision:test`.
    They are downloaded once, into a folder of `cache_directory()`, with their dependencies unless
    `transitive` is false. Two processes that want the same at once download it once. Raises
    `ConfigurationError` for an invalid coordinate, `JavaError` without a suitable Java, and
    `JarsError` if the download failed twice.

        resolve(["org.apache.kafka:kafka-clients:4.4.0"], transitive=False)
    """
    return _resolved(coordinates, transitive=transitive)


def _resolved(
    coordinates: Sequence[str],
    *,
    transitive: bool,
    expected_bytes: int = 0,
    progress: Progress | None = None,
) -> list[Path]:
    dependencies = [_ivy_dependency(each, transitive) for each in coordinates]
    has_classifier = any("m:classifier" in each for each in dependencies)
    module = _ivy_module(dependencies, _OF_MAVEN if has_classifier else "")
    order = _Order(coordinates, module, expected_bytes=expected_bytes, progress=progress)
    return sorted(_kept(order).glob("*.jar"))


def unpacked(
    coordinate: str,
    *,
    classifier: str,
    sha256: str,
    expected_bytes: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Return the folder with the content of a `.tar.gz` from Maven Central, unpacked once.

    `progress` is as in `kafka_jars`; the archive has `expected_bytes`, or 0 if that is not known.
    Raises what `resolve` raises, and `JarsError` for an archive with another SHA-256.
    """
    dependency = _ivy_dependency(coordinate, False).removesuffix("/>")
    name = coordinate.split(":")[1]
    artifact = f'<artifact name="{name}" type="tar.gz" ext="tar.gz" m:classifier="{classifier}"/>'
    module = _ivy_module([f"{dependency}>{artifact}</dependency>"], _OF_MAVEN)

    def unpack(folder: Path) -> None:
        (archive,) = folder.glob("*.tar.gz")
        with archive.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise JarsError([coordinate], f"its SHA-256 is {found}, and should be {sha256}")
        with tarfile.open(archive) as members:
            members.extractall(folder, filter="data")
        archive.unlink()

    return _kept(_Order([coordinate], module, _WITHOUT_POMS, unpack, expected_bytes, progress))


def cache_directory() -> Path:
    """Return `SPARK_KAFKA_SOURCE_CACHE`, or `spark-kafka-source` in the platform's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "spark-kafka-source"
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "spark-kafka-source"


def _ivy_module(dependencies: Sequence[str], namespace: str = "") -> str:
    listed = "\n".join(dependencies)
    return (
        f'<ivy-module version="2.0"{namespace}>\n'
        '<info organisation="spark-kafka-source" module="jars"/>\n'
        f"<dependencies>\n{listed}\n</dependencies>\n"
        "</ivy-module>\n"
    )


def _ivy_dependency(coordinate: str, transitive: bool) -> str:
    parts = _COORDINATE.fullmatch(coordinate)
    if not parts:
        raise ConfigurationError(
            "coordinates", f"'{coordinate}'", "Give organisation:name:revision"
        )
    dependency = (
        f'<dependency org="{parts[1]}" name="{parts[2]}" rev="{parts[3]}"'
        f' conf="default" transitive="{str(transitive).lower()}"'
    )
    if not parts[4]:
        return f"{dependency}/>"
    artifact = f'name="{parts[2]}" type="jar" ext="jar" m:classifier="{parts[4]}"'
    return f"{dependency}><artifact {artifact}/></dependency>"


def _kept(order: _Order) -> Path:
    """Return the folder for an order. Download it if it is missing."""
    cache = cache_directory()
    folder = cache / "jars" / hashlib.sha256(order.module.encode()).hexdigest()[:16]
    if not folder.exists():
        with _lock(cache):
            # Another process may have downloaded it while this one waited.
            if not folder.exists():
                _download(order, cache, folder)
    return folder


@contextmanager
def _lock(cache: Path) -> Iterator[None]:
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        # The kernel releases the lock if this process is killed.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _log.warning("Waiting for another process that downloads to %s ...", cache)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(order: _Order, cache: Path, folder: Path) -> None:
    # This process holds the lock, so these folders come from a process that was killed.
    for left in cache.glob("partial-*"):
        shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
    (partial / "ivy.xml").write_text(order.module)
    if order.settings:
        (partial / "settings.xml").write_text(order.settings)
    # A caller that shows the progress need not be told by the log.
    level = logging.INFO if order.progress else logging.WARNING
    _log.log(level, "Downloading %s, once, to %s ...", ", ".join(order.coordinates), folder)
    meter = Meter(cache / "ivy", order.expected_bytes, order.progress)
    if not any(_run_ivy(cache, partial, meter) for _ in range(ATTEMPTS)):
        raise JarsError(order.coordinates, _complaints(partial / "ivy.log"))
    order.finish(partial)
    folder.parent.mkdir(exist_ok=True)
    partial.rename(folder)


def _run_ivy(cache: Path, partial: Path, meter: Meter) -> bool:
    command = [find_java(), "-jar", str(_ivy_jar()), "-cache", str(cache / "ivy")]
    if (partial / "settings.xml").exists():
        command += ["-settings", str(partial / "settings.xml")]
    command += ["-ivy", str(partial / "ivy.xml"), "-confs", "default"]
    command += ["-retrieve", str(partial / _PATTERN)]
    log = partial / "ivy.log"
    log.unlink(missing_ok=True)
    deadline_seconds = time.monotonic() + DOWNLOAD_TIMEOUT_MS / 1000
    with closing(Child(command, output=log, errors=log)) as ivy:
        while (status := ivy.wait(_LOOK_MS)) is None and time.monotonic() < deadline_seconds:
            meter.look()
    meter.look()
    return status == 0


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [jar for folder in folders for jar in Path(folder, "jars").glob("ivy-*.jar")]
    if not found:
        raise JavaError(f"No ivy-*.jar in the jars of PySpark, looked for in {folders}")
    return found[0]


def _complaints(log: Path) -> str:
    """Return Ivy's complaints about modules and files, or else the end of its log."""
    text = log.read_text(errors="replace") if log.exists() else ""
    complaints = dict.fromkeys(line.strip() for line in _COMPLAINT.findall(text))
    return "\n".join(complaints) or tail(text)
