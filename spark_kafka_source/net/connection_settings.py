"""Settings of connections to brokers."""

import socket
from dataclasses import dataclass, field

from spark_kafka_source.net.retry import Retry
from spark_kafka_source.net.security import SecuritySettings
from spark_kafka_source.options.declaration import option
from spark_kafka_source.options.kinds import int32, string

_BUFFER = "the size in bytes; -1 leaves it to the system"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of connections, with the names and defaults of Kafka's consumer configuration."""

    client_id: str = option("kafka.client.id", string("spark-kafka-source"))
    socket_connection_setup_timeout_ms: int = option(
        "kafka.socket.connection.setup.timeout.ms", int32(10_000, minimum=1)
    )
    request_timeout_ms: int = option(
        "kafka.request.timeout.ms",
        int32(30_000, minimum=1),
        "the timeout of one request, and of the first contact with a cluster",
    )
    reconnect_backoff_ms: int = option("kafka.reconnect.backoff.ms", int32(50))
    reconnect_backoff_max_ms: int = option("kafka.reconnect.backoff.max.ms", int32(1_000))
    connections_max_idle_ms: int = option(
        "kafka.connections.max.idle.ms", int32(540_000, minimum=-1)
    )
    receive_buffer_bytes: int = option("kafka.receive.buffer.bytes", int32(-1, minimum=-1), _BUFFER)
    send_buffer_bytes: int = option("kafka.send.buffer.bytes", int32(-1, minimum=-1), _BUFFER)
    max_response_bytes: int = 256 * 1024 * 1024
    security: SecuritySettings = field(default_factory=SecuritySettings)

    @property
    def reconnects(self) -> Retry:
        """The pauses before a broker is connected to again."""
        most_ms = max(self.reconnect_backoff_ms, self.reconnect_backoff_max_ms)
        return Retry(self.reconnect_backoff_ms, most_ms)

    def buffer_bytes(self) -> dict[int, int]:
        """Return the sizes of a socket's buffers, by socket option."""
        return {
            socket.SO_RCVBUF: self.receive_buffer_bytes,
            socket.SO_SNDBUF: self.send_buffer_bytes,
        }
