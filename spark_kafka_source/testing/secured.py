"""The certificates and token server of a secured LocalKafka, and the brokers' properties for them.

https://kafka.apache.org/documentation/#security
"""

import base64
import hashlib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from spark_kafka_source.testing.certificates import Certificate, CertificateAuthority
from spark_kafka_source.testing.security import (
    JAAS_PACKAGE,
    LISTENERS,
    MECHANISMS,
    SCRAM_DIGESTS,
    SCRAM_ITERATIONS,
    Listener,
    Security,
    login,
)
from spark_kafka_source.testing.token_server import TokenServer


@dataclass(frozen=True, slots=True)
class Secured:
    """The certificates, the token server, and the brokers' settings for both."""

    users: Mapping[str, str] = field(repr=False)
    authority: CertificateAuthority
    token_server: TokenServer
    properties: Mapping[str, str] = field(repr=False)
    java_options: tuple[str, ...]
    format_arguments: tuple[str, ...] = field(repr=False)


def secure(security: Security, directory: Path, undo: ExitStack) -> Secured:
    """Make the certificates in a directory, and run the token server until `undo` ends."""
    authority = CertificateAuthority(directory)
    token_server = undo.enter_context(TokenServer(security.users))
    certificates = {
        "server": authority.issue("server"),
        "expired": authority.issue("server", expired=True),
        "other host": authority.issue("server", hosts=["elsewhere.example"]),
        "other authority": CertificateAuthority(directory / "other").issue("server"),
    }
    properties = _cluster_properties(security, token_server)
    for name, listener in LISTENERS.items():
        prefix = f"listener.name.{name.lower()}."
        of_listener = _listener_properties(listener, security, certificates, authority)
        properties |= {f"{prefix}{key}": value for key, value in of_listener.items()}
    # Kafka 4 fetches keys and tokens only from allowed addresses (KIP-768 as amended).
    urls = f"{token_server.keys_url},{token_server.token_url}"
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}"
    return Secured(
        users=security.users,
        authority=authority,
        token_server=token_server,
        properties=properties,
        java_options=(allowed,),
        format_arguments=tuple(_format_arguments(security)),
    )


def _cluster_properties(security: Security, token_server: TokenServer) -> dict[str, str]:
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": str(security.allow_everyone).lower(),
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/",
        "delegation.token.secret.key": secrets.token_urlsafe(),
        "sasl.oauthbearer.jwks.endpoint.url": token_server.keys_url,
        "sasl.oauthbearer.expected.issuer": token_server.issuer,
        # From Kafka 4.4 on, either this or an audience must be set. The tokens have none.
        "sasl.oauthbearer.allow.unverified.audience": "true",
    }


def _listener_properties(
    listener: Listener,
    security: Security,
    certificates: Mapping[str, Certificate],
    authority: CertificateAuthority,
) -> dict[str, str]:
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates[listener.certificate].keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    return {
        **(tls if listener.has_tls else {}),
        **(_sasl(security) if listener.has_sasl else {}),
        **listener.properties,
    }


def _sasl(security: Security) -> dict[str, str]:
    passwords = {f"user_{name}": password for name, password in security.users.items()}
    scram, oauth = "scram.ScramLoginModule", "oauthbearer.OAuthBearer"
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "plain.sasl.jaas.config": login("plain.PlainLoginModule", **passwords),
        "scram-sha-256.sasl.jaas.config": login(scram),
        "scram-sha-512.sasl.jaas.config": login(scram),
        "oauthbearer.sasl.jaas.config": login(f"{oauth}LoginModule"),
        "oauthbearer.sasl.server.callback.handler.class": (
            f"{JAAS_PACKAGE}.{oauth}ValidatorCallbackHandler"
        ),
    }


def _format_arguments(security: Security) -> Iterator[str]:
    """Return arguments with SCRAM's users for `kafka-storage format`.

    The passwords are salted and hashed, so they may have any characters.
    """
    for name, password in security.users.items():
        for mechanism, digest in SCRAM_DIGESTS.items():
            salt = secrets.token_bytes(16)
            salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, SCRAM_ITERATIONS)
            yield "--add-scram"
            yield (
                f"{mechanism}=[name={name},iterations={SCRAM_ITERATIONS},"
                f'salt="{_base64(salt)}",saltedpassword="{_base64(salted)}"]'
            )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
