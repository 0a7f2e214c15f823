"""A real schema registry for tests, Apicurio's, as a context manager."""

import http.client
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from spark_kafka_source.errors import ClosedError
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.testing.child import Child, RemovedDirectory
from spark_kafka_source.testing.downloads import Progress
from spark_kafka_source.testing.errors import RegistryFailedError
from spark_kafka_source.testing.jars import unpacked
from spark_kafka_source.testing.java import QUICK_START, find_java
from spark_kafka_source.testing.ports import free_ports
from spark_kafka_source.testing.properties import LOOPBACK

REGISTRY_VERSION = "3.0.9"
"""The newest Apicurio Registry that runs on Java 17."""

REGISTRY_JAVA_OPTIONS = ("-Xmx256m", *QUICK_START)
START_TIMEOUT_MS = 120_000

_ARCHIVE_BYTES = 108_860_403
_SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
_PATH = "/apis/ccompat/v7"
_PROBE_TIMEOUT_SECONDS = 2
_PAUSE_SECONDS = 0.05


def registry_files(progress: Progress | None = None) -> Path:
    """Return the folder of the registry. Download it if it is not there.

    `progress` is called some times a second during a download, with the bytes that have come and
    about how many there will be. Raises `JavaError` and `JarsError`.
    """
    coordinate = f"io.apicurio:apicurio-registry-app:{REGISTRY_VERSION}"
    return unpacked(
        coordinate,
        classifier="all",
        sha256=_SHA256,
        expected_bytes=_ARCHIVE_BYTES,
        progress=progress,
    )


class LocalRegistry:
    """A schema registry on this machine's loopback, for as long as the context lasts.

    Only Java 17 or newer and PySpark must be installed. It needs no broker. The registry, some 110
    MB, is downloaded once, into `cache_directory()`. It is a JVM of some 230 MB and starts in a few
    seconds. It keeps schemas in memory. Neither schemas nor processes remain, not even if this
    process is killed. POSIX systems only.

        with LocalRegistry() as registry:
            spark.readStream.format("pykafka").option("schema.registry.url", registry.url)

    `url` is the address of its Confluent-compatible API, and `log` the file of its log. The
    registry refuses a version that cannot read the one before it, which is `BACKWARD`, Confluent's
    default. The check is Apicurio's, and differs in details. The registry has no GUIDs.

    Entering raises `JavaError`, `JarsError` or `RegistryFailedError`.
    """

    def __init__(self, *, java_options: Sequence[str] = REGISTRY_JAVA_OPTIONS) -> None:
        self._java_options = tuple(java_options)
        self._port = 0
        self._child: Child | None = None
        self.log = Path()
        self._context = ExitStack()
        self._process = OwnProcess("LocalRegistry")

    def __enter__(self) -> Self:
        folder = registry_files()
        with ExitStack() as undo:
            directory = RemovedDirectory(Path(tempfile.mkdtemp(prefix="local-registry-")))
            undo.callback(directory.close)
            (port,) = free_ports(1)
            self.log = log = directory.path / "registry.log"
            child = Child(self._command(folder, directory.path, port), output=log, errors=log)
            undo.callback(child.close)
            _await_service(child, port, log)
            _check_new_versions(port, log)
            self._port, self._child = port, child
            self._context = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._port = 0
        if self._process.is_here:  # The child of a fork leaves the registry to its parent.
            self._context.close()

    @property
    def url(self) -> str:
        """The address for `schema.registry.url`. Raises `ClosedError` outside of the context."""
        if not self._port:
            raise ClosedError("LocalRegistry is a context manager: use it in a `with` statement")
        return f"http://{LOOPBACK}:{self._port}{_PATH}"

    @property
    def running(self) -> bool:
        """Whether the registry's process exists."""
        return self._child is not None and self._child.running

    def _command(self, folder: Path, directory: Path, port: int) -> list[str]:
        (jar,) = folder.glob("*-runner.jar")
        properties = {
            "java.io.tmpdir": directory,
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": port,
        }
        given = (f"-D{name}={value}" for name, value in properties.items())
        return [find_java(), *self._java_options, *given, "-jar", str(jar)]


def _await_service(child: Child, port: int, log: Path) -> None:
    deadline_seconds = time.monotonic() + START_TIMEOUT_MS / 1000
    while not _answers(port):
        if not child.running:
            status = child.wait(0)
            raise RegistryFailedError(f"The registry ended with {status} while it started", log)
        if time.monotonic() > deadline_seconds:
            text = f"The registry was not in service within {START_TIMEOUT_MS} ms"
            raise RegistryFailedError(text, log)
        time.sleep(_PAUSE_SECONDS)


def _check_new_versions(port: int, log: Path) -> None:
    """Set Confluent's default. Apicurio checks nothing by itself."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=START_TIMEOUT_MS / 1000)
    try:
        connection.request(
            "PUT",
            f"{_PATH}/config",
            json.dumps({"compatibility": "BACKWARD"}),
            {"Content-Type": "application/json"},
        )
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise RegistryFailedError(f"The registry was not set up: {error}", log) from error
    finally:
        connection.close()
    if status != http.HTTPStatus.OK:
        raise RegistryFailedError(f"The registry was not set up: status {status}", log)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_PROBE_TIMEOUT_SECONDS)
    try:
        connection.request("GET", f"{_PATH}/subjects")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
