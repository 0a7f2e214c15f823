"""SASL: how a client proves its identity to a broker. The only sockets are to token endpoints."""

from spark_kafka_source.net.sasl.errors import (
    AuthenticationError,
    TokenUnavailableError,
    refuses_login,
)
from spark_kafka_source.net.sasl.mechanism import Mechanism, mechanism_for
from spark_kafka_source.net.sasl.settings import SASL_OPTIONS, SaslMechanism, SaslSettings
from spark_kafka_source.net.sasl.tokens import Token, TokenProvider

__all__ = [
    "SASL_OPTIONS",
    "AuthenticationError",
    "Mechanism",
    "SaslMechanism",
    "SaslSettings",
    "Token",
    "TokenProvider",
    "TokenUnavailableError",
    "mechanism_for",
    "refuses_login",
]
