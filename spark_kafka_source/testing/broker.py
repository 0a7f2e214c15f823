"""One broker of a LocalKafka: a JVM to start, stop, kill and pause."""

import signal
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from spark_kafka_source.errors import ClosedError
from spark_kafka_source.testing.child import Child
from spark_kafka_source.testing.errors import BrokerFailedError
from spark_kafka_source.testing.java import Runtime
from spark_kafka_source.testing.probe import brokers_in_service
from spark_kafka_source.testing.properties import Node

# Only a hang takes so long, also on a machine that has much else to do.
START_TIMEOUT_MS = 180_000
STOP_TIMEOUT_MS = 90_000
LAST_STOP_TIMEOUT_MS = 10_000

_PROBE_TIMEOUT_MS = 1_000
_PAUSE_MS = 20


class Broker:
    """A broker with its own directory. It keeps its ports and its data over a restart.

    Methods that start or end the broker wait until it has started or ended. If that takes too long
    they raise `BrokerFailedError`, which quotes the broker's log.
    """

    def __init__(
        self,
        node: Node,
        directory: Path,
        runtime: Runtime,
        java_options: Sequence[str],
        cluster_id: str,
        *,
        format_arguments: Sequence[str] = (),
    ) -> None:
        self.node = node
        self.directory = directory
        self._runtime = runtime
        self._java_options = tuple(java_options)
        self._cluster_id = cluster_id
        self._format_arguments = tuple(format_arguments)
        self._child: Child | None = None

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.running else "not running"
        return f"Broker({self.node_id}, '{self.bootstrap_servers}', {state})"

    @property
    def node_id(self) -> int:
        """The broker's id in Kafka. The first broker of a LocalKafka has 1."""
        return self.node.node_id

    @property
    def bootstrap_servers(self) -> str:
        """The address of this broker alone, `127.0.0.1:port`."""
        return self.node.client_address

    @property
    def properties(self) -> Path:
        """The broker's properties file. Changes in it count from the next start."""
        return self.directory / "server.properties"

    @property
    def log_dir(self) -> Path:
        """The directory with the data of its topics, Kafka's `log.dirs`."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """The broker's log file. Each start appends to it."""
        return self.directory / "broker.log"

    @property
    def formatted(self) -> bool:
        """Whether the broker's storage is formatted. If not, the next start formats it."""
        return (self.log_dir / "meta.properties").exists()

    @property
    def running(self) -> bool:
        """Whether the broker's process exists. A paused one does."""
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        """The process id of the broker's JVM. Raises `ClosedError` if it does not run."""
        return self._running_child().pid

    def start(self) -> None:
        """Start the broker if it does not run, and wait until it is in service."""
        start_together([self], {self.node_id})

    def stop(self) -> None:
        """End the broker by SIGTERM, as an operator does. It hands its partitions over first.

        It needs a majority of the cluster's brokers for that, itself included. Without one, `kill`
        it.
        """
        self._terminate()
        self._await_end("stop", STOP_TIMEOUT_MS)

    def kill(self) -> None:
        """End the broker at once, by SIGKILL. The others notice after three seconds."""
        if self._child:
            self._child.close()

    def restart(self) -> None:
        """Stop the broker and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Pause the broker by SIGSTOP: connections stay open, and nothing is answered."""
        self._running_child().signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused broker continue."""
        self._running_child().signal(signal.SIGCONT)

    def _terminate(self) -> None:
        if self._child:
            self._child.signal(signal.SIGTERM)
            # A paused broker must continue in order to end.
            self._child.signal(signal.SIGCONT)

    def _running_child(self) -> Child:
        if self._child is None or not self._child.running:
            raise ClosedError(f"Broker {self.node_id} does not run: start it first")
        return self._child

    def _format(self) -> None:
        arguments = ("format", "-t", self._cluster_id, "-c", str(self.properties))
        more = self._format_arguments
        self._spawn(self._runtime.command("kafka.tools.StorageTool", *arguments, *more))

    def _launch(self) -> None:
        self._spawn(
            self._runtime.command(
                "kafka.Kafka", str(self.properties), java_options=self._java_options
            )
        )

    def _spawn(self, command: Sequence[str]) -> None:
        self.kill()  # Also releases a child that ended by itself.
        self._child = Child(command, output=self.log, errors=self.log)

    def _await_end(self, what: str, timeout_ms: int) -> int:
        status = self._child.wait(timeout_ms) if self._child else 0
        if status is None:
            raise self._failed(f"did not {what} within {timeout_ms} ms")
        return status

    def _await_service(self, expected: Collection[int]) -> None:
        if not _within(START_TIMEOUT_MS, lambda: not self.running or self._finds(expected)):
            raise self._failed(f"was not in service within {START_TIMEOUT_MS} ms")
        if not self.running:
            raise self._failed(f"ended with {self._await_end('end', 0)} while it started")

    def _finds(self, expected: Collection[int]) -> bool:
        return brokers_in_service(self.node.internal_port, _PROBE_TIMEOUT_MS) >= set(expected)

    def _failed(self, what: str) -> BrokerFailedError:
        return BrokerFailedError(f"Broker {self.node_id} {what}", self.log)


def start_together(brokers: Sequence[Broker], expected: Collection[int]) -> None:
    """Start the brokers that do not run, all at once.

    Wait until each broker finds the brokers with the `expected` ids in service.
    """
    stopped = [broker for broker in brokers if not broker.running]
    _format_together([broker for broker in stopped if not broker.formatted])
    for broker in stopped:
        broker._launch()
    for broker in brokers:
        broker._await_service(expected)


def _format_together(brokers: Sequence[Broker]) -> None:
    for broker in brokers:
        broker._format()
    for broker in brokers:
        if status := broker._await_end("format its storage", START_TIMEOUT_MS):
            raise broker._failed(f"could not format its storage: the tool ended with {status}")


def stop_together(brokers: Sequence[Broker]) -> None:
    """Stop all brokers of a cluster at once, by SIGTERM.

    Without a majority of the controllers the last brokers get no permission to stop, and could wait
    for minutes. They are killed after ten seconds.
    """
    for broker in brokers:
        broker._terminate()
    if not _within(STOP_TIMEOUT_MS, lambda: 2 * len(_running(brokers)) <= len(brokers)):
        raise _running(brokers)[0]._failed(f"did not stop within {STOP_TIMEOUT_MS} ms")
    _within(LAST_STOP_TIMEOUT_MS, lambda: not _running(brokers))
    for broker in brokers:
        broker.kill()


def _running(brokers: Sequence[Broker]) -> list[Broker]:
    return [broker for broker in brokers if broker.running]


def _within(timeout_ms: int, condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true in time."""
    deadline = time.monotonic() + timeout_ms / 1000
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_MS / 1000)
    return True
