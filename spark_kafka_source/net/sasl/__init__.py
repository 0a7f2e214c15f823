"""SASL: how a client shows a broker who it is, without a socket but that to a token endpoint."""

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
