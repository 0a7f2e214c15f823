"""Metrics of a broker's sockets, which SocketMetrics.java asks its JVM for."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.testing import Broker
from spark_kafka_source.testing.java import QUICK_START, find_java


class SocketMetrics:
    """Metrics of https://kafka.apache.org/documentation/#selector_monitoring."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def of(self, listener: str, metric: str) -> int:
        """Return a metric, such as `successful-reauthentication-total`, summed over threads."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None
        questions.write(f"{listener} {metric}\n")
        questions.flush()
        answer = answers.readline()
        assert answer, f"it ended at {listener} {metric}"
        return int(answer)


@contextmanager
def socket_metrics(broker: Broker) -> Iterator[SocketMetrics]:
    """Yield the metrics of a running broker."""
    program = str(Path(__file__).with_name("SocketMetrics.java"))
    command = [find_java(), *QUICK_START, program, str(broker.pid)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        # The end of the block closes the JVM's stdin, which ends the JVM, and waits for that.
        yield SocketMetrics(process)
