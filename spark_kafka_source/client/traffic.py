"""Connections made to brokers, and how long brokers take to answer, for a client's metrics.

https://kafka.apache.org/documentation/#common_node_monitoring
"""

import threading
import time
from collections.abc import Callable, Iterator

from spark_kafka_source.client.cluster import Cluster
from spark_kafka_source.client.metrics import Measures
from spark_kafka_source.client.sensor import Sensor, SensorConfig
from spark_kafka_source.net import Address

_MOST_REMEMBERED = 1_000


class Traffic:
    """Sensors of one client's connections. Its siblings share them, so any thread may record."""

    def __init__(
        self, config: SensorConfig | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config, self._clock = config, clock
        self._connections = Sensor(config, clock)
        self._lock = threading.Lock()
        self._answer_ms: dict[Address, Sensor] = {}

    def connected(self) -> None:
        """Record that a connection was made."""
        self._connections.record()

    def answered(self, address: Address, seconds: float) -> None:
        """Record how long a request to this address took until its answer."""
        sensor = self._answer_ms.get(address)
        if sensor is None:
            with self._lock:
                sensor = self._answer_ms.setdefault(address, Sensor(self._config, self._clock))
                if len(self._answer_ms) > _MOST_REMEMBERED:
                    del self._answer_ms[next(iter(self._answer_ms))]
        sensor.record(seconds * 1000)

    @property
    def measures(self) -> Measures:
        """The functions of all metrics that are not of one broker. Rates are per second."""
        return {
            "connection-creation-rate": lambda: self._connections.frequency,
            "connection-creation-total": lambda: self._connections.count,
        }

    def answer_ms(self, cluster: Cluster) -> Iterator[tuple[int, Sensor]]:
        """Yield the id of each broker that has answered, and how long its answers took."""
        for broker in list(cluster.brokers.values()):
            sensor = self._answer_ms.get(broker.address)
            if sensor is not None:
                yield broker.node_id, sensor
