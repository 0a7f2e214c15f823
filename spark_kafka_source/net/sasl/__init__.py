"""SASL: how a client proves its identity to a broker. The only sockets are to token endpoints."""

from spark_kafka_source.net.sasl.errors import (
    AuthenticationError,
    TokenUnavailableError,
    refuses_login,
)
from spark_kafka_source.net.sasl.settings import SASL_OPTIONS, SaslMechanism, SaslSettings
from spark_kafka_source.net.sasl.tokens import Token, TokenProvider

__all__ = [
    "SASL_OPTIONS",
    "AuthenticationError",
    "SaslMechanism",
    "SaslSettings",
    "Token",
    "TokenProvider",
    "TokenUnavailableError",
    "refuses_login",
]
