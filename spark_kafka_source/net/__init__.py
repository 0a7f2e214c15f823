"""Sockets: connections to brokers and to HTTP servers. No other package opens any."""

from spark_kafka_source.net.address import Address, Identity, parse_addresses
from spark_kafka_source.net.broker_history import BrokerHistory
from spark_kafka_source.net.connection import Awaited, Connection
from spark_kafka_source.net.connection_failures import RequestTimeoutError
from spark_kafka_source.net.connection_settings import ConnectionSettings
from spark_kafka_source.net.conversation import (
    Conversation,
    Conversations,
    InterruptedConversationError,
    Running,
    Wait,
    keep_asking,
    pause,
    run,
    together,
    wait_for,
    wait_of_all,
)
from spark_kafka_source.net.deadline import Deadline
from spark_kafka_source.net.dial import Dial
from spark_kafka_source.net.readable import HasFileno, Wakeup, readable
from spark_kafka_source.net.retry import NextTry, Retry
from spark_kafka_source.net.sasl import (
    SASL_OPTIONS,
    AuthenticationError,
    Token,
    TokenProvider,
    refuses_login,
)
from spark_kafka_source.net.security import (
    SECURITY_OPTIONS,
    SecurityProtocol,
    SecuritySettings,
    TlsSettings,
)
from spark_kafka_source.net.tls.context import tls_context
from spark_kafka_source.net.tls.failures import Peer, TlsError

__all__ = [
    "SASL_OPTIONS",
    "SECURITY_OPTIONS",
    "Address",
    "AuthenticationError",
    "Awaited",
    "BrokerHistory",
    "Connection",
    "ConnectionSettings",
    "Conversation",
    "Conversations",
    "Deadline",
    "Dial",
    "HasFileno",
    "Identity",
    "InterruptedConversationError",
    "NextTry",
    "Peer",
    "RequestTimeoutError",
    "Retry",
    "Running",
    "SecurityProtocol",
    "SecuritySettings",
    "TlsError",
    "TlsSettings",
    "Token",
    "TokenProvider",
    "Wait",
    "Wakeup",
    "keep_asking",
    "parse_addresses",
    "pause",
    "readable",
    "refuses_login",
    "run",
    "tls_context",
    "together",
    "wait_for",
    "wait_of_all",
]
