"""SASL without sockets: the messages of a client, and its checks of the answers.

https://www.rfc-editor.org/rfc/rfc4422; for Kafka's framing see KIP-43 and KIP-152.
"""

from typing import Protocol

from spark_kafka_source.net.sasl.aws_msk_iam import AwsTokens, region_of
from spark_kafka_source.net.sasl.kerberos import Gssapi
from spark_kafka_source.net.sasl.logins import AwsLogin, KerberosLogin, PasswordLogin
from spark_kafka_source.net.sasl.oauthbearer import OAuthBearer
from spark_kafka_source.net.sasl.plain import Plain
from spark_kafka_source.net.sasl.scram import Scram
from spark_kafka_source.net.sasl.settings import SaslMechanism, SaslSettings
from spark_kafka_source.net.sasl.tokens import token_cache

_SCRAM_HASHES = {SaslMechanism.SCRAM_SHA_256: "sha256", SaslMechanism.SCRAM_SHA_512: "sha512"}


class Mechanism(Protocol):
    """One authentication. Each method raises `AuthenticationError` if it cannot go on."""

    name: str
    """Name in SaslHandshake, such as "SCRAM-SHA-256"."""

    def first(self) -> bytes:
        """Return the client's first message. The request for a token or a ticket may take a while.

        Also raises `ConfigurationError` if a library that signs tokens is not installed.
        """
        ...

    def next(self, challenge: bytes) -> bytes | None:
        """Return the answer to a challenge, or None once the authentication is complete."""
        ...


def mechanism_for(settings: SaslSettings, host: str) -> Mechanism:
    """Create an authentication to the broker on `host`, as its address names it.

    Raises `ConfigurationError` if the Kerberos library is not installed, or the host's AWS region
    is not known, and `AuthenticationError` if there is no Kerberos ticket.
    """
    login = settings.login
    if isinstance(login, KerberosLogin):
        return Gssapi(login, host)
    if isinstance(login, AwsLogin):
        return OAuthBearer(token_cache(AwsTokens(login, region_of(host)), login.refresh))
    if isinstance(login, PasswordLogin):
        hash_name = _SCRAM_HASHES.get(settings.mechanism)
        return Scram(settings.mechanism.value, hash_name, login) if hash_name else Plain(login)
    return OAuthBearer(token_cache(login.source, login.refresh), login.extensions)
