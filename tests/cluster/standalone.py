"""A standalone Spark cluster on loopback: a master and workers, each a JVM of its own."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from types import MappingProxyType

import psutil
import pyspark

from spark_kafka_source.testing.child import Child
from tools.ports import LOOPBACK
from tools.traffic import wait_until

_DEPLOY = "org.apache.spark.deploy"
_HOME = Path(pyspark.__file__).parent
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_URL = re.compile(r"Starting Spark master at (spark://\S+)")


@dataclass
class StandaloneCluster:
    """A master and its workers, with their files in `directory`. Each worker has one core."""

    directory: Path
    workers: int = 2
    url: str = ""
    _children: dict[str, Child] = field(default_factory=dict)

    def __enter__(self) -> "StandaloneCluster":
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the master and the workers. The executors end with them."""
        while self._children:
            self._children.popitem()[1].close()

    def _start_all(self) -> None:
        self.directory.mkdir(parents=True)
        self._start("master", f"{_DEPLOY}.master.Master", "--port", "0")
        wait_until(lambda: _URL.search(self.log("master")) is not None)
        found = _URL.search(self.log("master"))
        assert found is not None
        self.url = found[1]
        for number in range(self.workers):
            self.start_worker(number)

    def start_worker(self, number: int) -> None:
        """Start a worker, and wait until the master knows it."""
        name = f"worker-{number}"
        work = self.directory / f"{name}-files"
        before = self.log("master").count("Registering worker")
        options = ["--cores", "1", "--memory", "600m", "--work-dir", str(work), self.url]
        self._start(name, f"{_DEPLOY}.worker.Worker", *options)
        wait_until(lambda: self.log("master").count("Registering worker") > before)

    def kill_worker(self, number: int) -> None:
        """Kill a worker with all that it has started: its executors and their Python."""
        name = f"worker-{number}"
        for each in reversed(self._processes_of(name)):
            with suppress(psutil.NoSuchProcess):  # A Python worker may end by itself.
                each.kill()
        self._children.pop(name).close()

    def kill_executor(self) -> None:
        """Kill the JVM of one executor. Its worker starts another one."""
        executors = (
            process
            for name in list(self._children)
            for process in self._processes_of(name)
            if _is_executor(process)
        )
        next(executors).kill()

    def submit(
        self,
        program: Path,
        *arguments: str,
        options: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Popen[str]:
        """Start a program by `spark-submit`. Its output and its errors go into one pipe."""
        command = [str(_HOME / "bin" / "spark-submit"), *self.options(), *options]
        return Popen(
            [*command, str(program), *arguments],
            env=self.environment(environment),
            cwd=self.directory,
            stdout=PIPE,
            stderr=STDOUT,
            text=True,
        )

    def options(self) -> list[str]:
        """Return the options of a small program on this cluster."""
        settings = {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "400m",
            "spark.testing.reservedMemory": "50000000",
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        named = (f"--conf={name}={value}" for name, value in settings.items())
        return ["--master", self.url, *named]

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a program. The package is found only as `more` says."""
        left_out = {"PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
        own = {name: value for name, value in os.environ.items() if name not in left_out}
        given = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK}
        return {**own, **given, **more}

    def log(self, name: str) -> str:
        """Return what a process of the cluster has logged."""
        return "".join(
            path.read_text(errors="replace") for path in self.directory.glob(f"{name}.*")
        )

    def _start(self, name: str, of: str, *options: str) -> None:
        command = ["env", "SPARK_DAEMON_MEMORY=256m", f"SPARK_DAEMON_JAVA_OPTS={_SMALL}"]
        command.append(f"SPARK_LOCAL_IP={LOOPBACK}")
        command += [str(_HOME / "bin" / "spark-class"), of, "--host", LOOPBACK]
        self._children[name] = Child(
            [*command, "--webui-port", "0", *options],
            output=self.directory / f"{name}.out",
            errors=self.directory / f"{name}.err",
        )

    def _processes_of(self, name: str) -> list[psutil.Process]:
        first = psutil.Process(self._children[name].pid)
        return [first, *first.children(recursive=True)]


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())
    except psutil.Error:  # It has ended.
        return False
