"""The clients in the comparison, and their members' processes."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Self

from spark_kafka_source.testing import kafka_jars
from spark_kafka_source.testing.java import QUICK_START, find_java
from tools.reliability.deaf.diary import Diary
from tools.traffic import wait_until

_JAVA = Path(__file__).with_name("JavaMember.java")
_END_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Client:
    """A kind of consumer, by one of the two group protocols."""

    name: str
    kind: str
    protocol: str = "classic"

    def command(self) -> list[str]:
        """Return the command that starts a member of this kind."""
        if self.kind == "java":
            jars = os.pathsep.join(map(str, kafka_jars()))
            quiet = "-Dorg.apache.logging.log4j.level=OFF"
            return [find_java(), *QUICK_START, quiet, "-cp", jars, str(_JAVA)]
        return [sys.executable, "-m", "tools.reliability.deaf.member", self.kind]


OURS = Client("KafkaConsumer, classic", "ours")
OURS_848 = Client("KafkaConsumer, KIP-848", "ours", "consumer")
THEIRS = Client("confluent-kafka", "theirs")
JAVA = Client("Java", "java")
ALL = (OURS, OURS_848, THEIRS, JAVA)


class Member:
    """A group member in its own process. Leaving the context kills the process."""

    def __init__(self, client: Client, settings: Mapping[str, object], *orders: str) -> None:
        """Create it. `settings` have Kafka's names. `orders` are lines to send before `begin`."""
        self.client = client
        self.diary = Diary()
        self._orders = [f"set {name} {value}" for name, value in settings.items()]
        if "group.id" in settings and client.protocol != "classic":
            self._orders.append(f"set group.protocol {client.protocol}")
        self._orders += orders

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self.client.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._hearing = Thread(target=self._hear)
        self._hearing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._hearing.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.diary.add(line)

    def begin(self) -> None:
        """Wait until the process is up. Then make it create its consumer and poll."""
        wait_until(lambda: self.diary.is_ready)
        for line in (*self._orders, "begin"):
            self.tell(line)

    def tell(self, line: str) -> None:
        """Send the process a line. The process reads the line between two polls."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """Make the process close its consumer. Wait a short time for the process to end."""
        with suppress(BrokenPipeError):
            self.tell("close")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
