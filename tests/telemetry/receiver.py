"""A broker that receives metrics, and what it received."""

import base64
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from spark_kafka_source.testing import LocalKafka, local_kafka
from spark_kafka_source.testing.local_kafka import BROKER_JAVA_OPTIONS
from tests.telemetry.payloads import points, read

SOURCE = Path(__file__).with_name("Receiver.java")
_CLIENT_METRICS = 16
_SET, _DELETE = 0, 1


@dataclass(frozen=True)
class Push:
    """One push, as the broker's plugin got it."""

    client_id: str
    client_instance_id: uuid.UUID
    is_last: bool
    interval_ms: int
    content_type: str
    labels: Mapping[str, str]
    metrics: Mapping[str, Metric]

    @classmethod
    def of(cls, line: str) -> "Push":
        client_id, instance_id, is_last, interval_ms, content_type, data = line.split(" ")
        labels, metrics = read(base64.b64decode(data))
        return cls(
            client_id,
            uuid.UUID(bytes=base64.urlsafe_b64decode(instance_id + "==")),
            is_last == "true",
            int(interval_ms),
            content_type,
            labels,
            metrics,
        )

    def value(self, name: str) -> float:
        """Return the only value of a metric."""
        (point,) = points(self.metrics[name])
        return float(point.as_double)


class Receiver:
    """A real broker, and the pushes that it got."""

    def __init__(self, kafka: LocalKafka, file: Path) -> None:
        self.kafka = kafka
        self._file = file

    def pushes(self, client_id: str) -> list[Push]:
        """Return all pushes of a client so far."""
        if not self._file.exists():
            return []
        whole = self._file.read_text().rpartition("\n")[0]
        found = [Push.of(line) for line in whole.splitlines()]
        return [each for each in found if each.client_id == client_id]

    def subscribe(self, name: str, client_id: str, metrics: str, interval_ms: int = 200) -> None:
        """Make a subscription for one client, as `kafka-client-metrics.sh` does."""
        self._alter(
            name,
            AlterableConfig("metrics", _SET, metrics),
            AlterableConfig("interval.ms", _SET, str(interval_ms)),
            AlterableConfig("match", _SET, f"client_id={client_id}"),
        )

    def unsubscribe(self, name: str) -> None:
        """Delete a subscription."""
        self._alter(
            name, *(AlterableConfig(each, _DELETE) for each in ("metrics", "interval.ms", "match"))
        )

    def _alter(self, name: str, *changes: AlterableConfig) -> None:
        resource = AlterConfigsResource(_CLIENT_METRICS, name, list(changes))
        request = IncrementalAlterConfigsRequest(resources=[resource])
        with KafkaAdmin(bootstrap_servers=self.kafka.bootstrap_servers) as admin:
            client = admin.client
            answer = client.run(client.send_to_any(request, Deadline.after_ms(30_000)))
        assert [each.error_code for each in answer.responses] == [0], answer


@contextmanager
def receiving_broker(jars: Sequence[Path], directory: Path) -> Iterator[Receiver]:
    """Run a broker with Receiver.java."""
    classes, file = directory / "classes", directory / "pushes"
    class_path = ":".join(map(str, jars))
    command = ["javac", "-cp", class_path, "-d", str(classes), str(SOURCE)]
    subprocess.run(command, check=True, timeout=120)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_kafka, "kafka_jars", lambda _: [*jars, classes])
        options = (*BROKER_JAVA_OPTIONS, f"-Dtelemetry.file={file}")
        properties = {"metric.reporters": "Receiver"}
        with LocalKafka(properties=properties, java_options=options) as kafka:
            yield Receiver(kafka, file)
