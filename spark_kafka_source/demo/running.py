"""What a demo runs in: a real broker, a Spark session, a folder that is removed, and Ctrl-C."""

import contextlib
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import spark_kafka_source
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.testing import BrokerFailedError, LocalKafka, kafka_jars
from spark_kafka_source.testing.child import RemovedDirectory
from spark_kafka_source.testing.downloads import DownloadLine
from spark_kafka_source.testing.jars import KAFKA_VERSION
from spark_kafka_source.testing.java import find_java

FAILURES = (KafkaError, PySparkException, Py4JError)
"""The errors that end a demo with a line."""

_STOP_SECONDS = 10
_ENDED_BY_CTRL_C = 130


class CtrlC:
    """Ctrl-C: the first one ends the demo in order, the second one at once."""

    def __init__(self) -> None:
        self._is_heard = False

    def listen(self) -> None:
        """Heed Ctrl-C from now on. Spark has a handler of its own, so call it after its start."""
        signal.signal(signal.SIGINT, self._hear)
        sys.unraisablehook = _say_unless_ctrl_c

    def _hear(self, *_: object) -> None:
        if self._is_heard:
            os._exit(_ENDED_BY_CTRL_C)  # The broker, the JVM and the checkpoint end with it.
        self._is_heard = True
        text = b"\nCtrl-C: the demo stops. Another one ends it at once.\n"
        with contextlib.suppress(OSError):  # Its reader may have ended, too.
            os.write(1, text)  # A `print` may be at work, and cannot be entered twice.
        logging.disable()  # Py4J logs a stack for a call that this breaks off.
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if one came in a finalizer, where Python drops the error."""
        if self._is_heard:
            raise KeyboardInterrupt


def _say_unless_ctrl_c(dropped: "sys.UnraisableHookArgs") -> None:
    """Say which error a finalizer has raised. `CtrlC.check` sees to Ctrl-C."""
    if dropped.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(dropped)


class Stage:
    """A broker that runs, and Ctrl-C."""

    def __init__(self, kafka: LocalKafka, ctrl_c: CtrlC) -> None:
        self.kafka, self.ctrl_c = kafka, ctrl_c

    @property
    def servers(self) -> str:
        """The broker's address."""
        return self.kafka.bootstrap_servers

    def what_runs(self) -> str:
        """Return lines with the address and the versions."""
        return (
            f"Apache Kafka {KAFKA_VERSION} is up at {self.servers}.\n"
            f"Spark {pyspark.__version__} is with it. Any from 4.0 to 4.3 will do."
        )

    def pause(self, seconds: float) -> None:
        """Wait, then raise if the demo is to end: `KeyboardInterrupt`, `BrokerFailedError`."""
        time.sleep(seconds)
        self.ctrl_c.check()
        self.check_broker()

    def check_broker(self) -> None:
        """Raise `BrokerFailedError` if the broker has ended."""
        if not self.kafka.broker(1).running:
            raise BrokerFailedError("The broker has ended", self.kafka.broker(1).log)


Claim = tuple[bool, str]
"""A sentence about the run, and whether it is as it should be."""


def exit_status(demo: Callable[[Stage], Sequence[Claim]], after: Callable[[Stage], None]) -> int:
    """Run a demo with a broker, and show its claims. Then call `after`.

    Return 1 if a claim does not hold or if the demo cannot go on, else 0. Ctrl-C ends it either
    way: before the claims are shown none is known not to hold.
    """
    _use_the_installed_spark()
    ctrl_c = CtrlC()
    ctrl_c.listen()
    claims: Sequence[Claim] = ()
    try:
        with _broker(ctrl_c) as stage:
            claims = demo(stage)
            show_claims(claims)
            after(stage)
    except KeyboardInterrupt:
        pass  # Some demos run until then.
    except FAILURES as error:
        print(f"The demo cannot go on: {reason(error)}", file=sys.stderr)
        return 1
    return int(not all(holds for holds, _ in claims))


def _use_the_installed_spark() -> None:
    """Let nothing but the installed pyspark and this Python count.

    A machine with a Spark of its own often names that one's folder, settings, arguments and Python.
    """
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        os.environ.pop(name, None)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[name] = sys.executable


@contextlib.contextmanager
def _broker(ctrl_c: CtrlC) -> Iterator[Stage]:
    find_java()  # Before a download.
    with DownloadLine("Kafka's jars", sys.stderr) as line:
        kafka_jars(progress=line)
    say("Starting a real Kafka broker ...")
    with LocalKafka() as kafka:
        stage = Stage(kafka, ctrl_c)
        try:
            yield stage
        except FAILURES:
            stage.check_broker()  # Its end may be the cause.
            raise


def show_claims(claims: Sequence[Claim]) -> None:
    """Show what was counted, each line with whether it is as it should be."""
    say("\nWhat this run shows, counted:")
    for holds, text in claims:
        say(f"  {'yes' if holds else 'NO '}  {text}")


def reason(error: Exception) -> str:
    """Return the text of an error; one of Spark's has many lines, with the cause among them."""
    text = str(error)
    if isinstance(error, KafkaError):
        return text
    causes = re.findall(r"^(?:[\w.]+\.)?\w*(?:Error|Exception): .+", text, re.MULTILINE)
    return str([*text.splitlines()[:1], *causes][-1]) if text else type(error).__name__


def python() -> str:
    """Return how to call this Python in a terminal that is in this folder."""
    if shutil.which("python") == sys.executable:
        return "python"
    here = Path.cwd()
    path = Path(sys.executable)
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@contextlib.contextmanager
def session(
    name: str, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """Start Spark in this process, with two cores, and stop it at the end."""
    spark = _quiet(
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        # Makes small tasks cheap; see docs/tuning.md.
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config(map=dict(settings))
        .getOrCreate
    )
    spark_kafka_source.register(spark)
    try:
        yield spark
    finally:
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    """Stop the queries and Spark, within some seconds: the JVM ends with this process anyhow.

    It does so in a thread, which has a connection to the JVM of its own. On the main thread's,
    Ctrl-C may have broken off a call, and the next call would take that call's answer.
    """

    def stop() -> None:
        with contextlib.suppress(*FAILURES):
            for query in spark.streams.active:
                query.stop()
            spark.stop()

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Make a directory that is removed at the end, however this process ends."""
    directory = RemovedDirectory(Path(tempfile.mkdtemp()))
    try:
        yield directory.path
    finally:
        directory.close()


def _quiet(start: Callable[[], SparkSession]) -> SparkSession:
    """Start Spark with its standard error in a file, which is shown only if Spark does not start.

    Ctrl-C and the end of a session make Spark print stacks that mean nothing.
    """
    own_stderr = os.dup(sys.stderr.fileno())
    with tempfile.TemporaryFile() as log, os.fdopen(own_stderr, "wb") as kept:
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            return start()
        except Exception:
            log.seek(0)
            kept.write(log.read())
            raise
        finally:
            os.dup2(own_stderr, sys.stderr.fileno())


def say(text: str) -> None:
    """Show a line now, also where the output is a file."""
    print(text, flush=True)
