"""Settings of connections to brokers."""

import socket
from dataclasses import dataclass, field

from spark_kafka_source.net.retry import Retry
from spark_kafka_source.net.security import SecuritySettings
from spark_kafka_source.settings import setting

_BUFFER = "the size in bytes; -1 leaves it to the system"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of connections, with the names and defaults of Kafka's consumer configuration."""

    client_id: str = setting("spark-kafka-source")
    socket_connection_setup_timeout_ms: int = setting(10_000, minimum=1)
    request_timeout_ms: int = setting(
        30_000,
        minimum=1,
        meaning="the timeout of one request, and of the first contact with a cluster",
    )
    reconnect_backoff_ms: int = setting(50)
    reconnect_backoff_max_ms: int = setting(1_000)
    connections_max_idle_ms: int = setting(540_000, minimum=-1)
    receive_buffer_bytes: int = setting(-1, minimum=-1, meaning=_BUFFER)
    send_buffer_bytes: int = setting(-1, minimum=-1, meaning=_BUFFER)
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
