"""What a broker's sockets have seen, by the JVM's own management: SocketMetrics.java asks it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.testing import Broker
from spark_kafka_source.testing.java import QUICK_START, find_java


class SocketMetrics:
    """The metrics of https://kafka.apache.org/documentation/#selector_monitoring."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def of(self, listener: str, metric: str) -> int:
        """One of them, as `successful-reauthentication-total`, over all of a listener's threads."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None and answers is not None
        questions.write(f"{listener} {metric}\n")
        questions.flush()
        answer = answers.readline()
        assert answer, f"it ended at {listener} {metric}"
        return int(answer)


@contextmanager
def socket_metrics(broker: Broker) -> Iterator[SocketMetrics]:
    """Those of a broker that runs."""
    program = str(Path(__file__).with_name("SocketMetrics.java"))
    command = [find_java(), *QUICK_START, program, str(broker.pid)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        # Leaving the block closes the JVM's stdin, at which it ends, and waits for it.
        yield SocketMetrics(process)
