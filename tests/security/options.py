"""Clients' options for secured listeners: as options of a Spark query, and as librdkafka's."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_kafka_source.secret import Secret
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.certificates import Certificate, CertificateAuthority, to_jks
from spark_kafka_source.testing.security import LISTENERS, MECHANISMS, login

# Characters that need quotes in JAAS, encoding in URLs, escapes in SCRAM and in properties.
USERS = {"alice": 'a "b"; \\, =]%+é', "bob": "bob's own", "canary": "CnryPasswordOfTheUserCanary"}
"""The users of the shared broker."""

WAYS = [
    ("SSL", ""),
    ("MTLS", ""),
    *[(listener, each) for listener in ("SASL_PLAINTEXT", "SASL_SSL") for each in MECHANISMS],
    *[("SASL_SSL_BRIEF", each) for each in MECHANISMS],
]
"""All listeners with their mechanisms."""

FORMS = ("PEM", "inline", "PKCS12", "JKS")
"""Users' formats of certificates."""

ENCRYPTED = "PEM encrypted"
"""A key with today's usual encryption, which Java 17 cannot read."""

_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}
_OAUTH = "oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"

Options = dict[str, str]


def options_of(
    kafka: LocalKafka,
    listener: str,
    mechanism: str = "",
    *,
    user: str = "alice",
    password: str | None = None,
    form: str = "PEM",
) -> Options:
    """Return a user's options of a Spark query for this listener.

    With "MTLS" the user gets a certificate. On listeners with SASL the user logs in by
    `mechanism`, by default with the user's password. "CLIENT" is the plain listener, without a
    login. `form` is one of `FORMS`.
    """
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers_of(listener)}
    if listener == "CLIENT":
        return options
    settings = LISTENERS[listener]
    options["kafka.security.protocol"] = settings.protocol
    if settings.has_tls:
        options |= trust_options(kafka.authority, form)
    if listener == "MTLS":
        options |= certificate_options(kafka.authority.issue(user), form)
    if settings.has_sasl:
        secret = USERS.get(user, "") if password is None else password
        options |= _sasl(kafka, mechanism, user, secret)
    return options


def token_options(token_id: str, hmac: str) -> Options:
    """Return options that turn a SCRAM login into a login by delegation token."""
    jaas = login(_MODULES["SCRAM-SHA-256"], username=token_id, password=hmac, tokenauth="true")
    return {"kafka.sasl.jaas.config": jaas}


def independent(
    kafka: LocalKafka,
    listener: str,
    mechanism: str = "",
    *,
    user: str = "alice",
    password: str | None = None,
) -> dict[str, Any]:
    """Return confluent-kafka's settings for the same login, without bootstrap servers."""
    settings: dict[str, Any] = {
        "security.protocol": LISTENERS[listener].protocol,
        "ssl.ca.location": str(kafka.authority.certificate),
    }
    if listener == "MTLS":
        certificate = kafka.authority.issue(user)
        settings["ssl.certificate.location"] = str(certificate.chain)
        settings["ssl.key.location"] = str(certificate.key)
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = token_callback(kafka.token_server.token(user).reveal())
    elif mechanism:
        settings["sasl.username"] = user
        settings["sasl.password"] = USERS[user] if password is None else password
    return settings | ({"sasl.mechanism": mechanism} if mechanism else {})


def token_callback(token: str) -> Callable[[str], tuple[str, float]]:
    """Return confluent-kafka's callback. It gives a token and its expiry."""
    return lambda _: (token, time.time() + 3600)


def trust_options(authority: CertificateAuthority, form: str) -> Options:
    """Return a query's options that trust an authority, in one of `FORMS`."""
    if form == "inline":
        inline = {"type": "PEM", "certificates": authority.certificate.read_text()}
        return _named("kafka.ssl.truststore.", inline)
    if form == "PEM":
        return _named(
            "kafka.ssl.truststore.", {"type": "PEM", "location": str(authority.certificate)}
        )
    return _named("kafka.ssl.truststore.", _store(authority.truststore, authority.password, form))


def certificate_options(certificate: Certificate, form: str) -> Options:
    """Return a query's options with a client certificate, in one of `FORMS` or `ENCRYPTED`."""
    inline = {
        "type": "PEM",
        "certificate.chain": certificate.chain.read_text(),
        "key": certificate.key.read_text(),
    }
    by_form = {
        "PEM": {"type": "PEM", "location": str(certificate.keystore)},
        ENCRYPTED: {"type": "PEM", "location": str(certificate.encrypted_keystore)},
        "inline": inline,
    }
    password = {"kafka.ssl.key.password": certificate.password.reveal()}
    if form in by_form:
        options = _named("kafka.ssl.keystore.", by_form[form])
        return options | (password if form == ENCRYPTED else {})
    store = _store(certificate.pkcs12, certificate.password, form)
    return _named("kafka.ssl.keystore.", store) | password


def _store(pkcs12: Path, password: Secret, form: str) -> Options:
    path = to_jks(pkcs12, password) if form == "JKS" else pkcs12
    return {"type": form, "location": str(path), "password": password.reveal()}


def _named(prefix: str, options: Options) -> Options:
    return {f"{prefix}{name}": value for name, value in options.items()}


def _sasl(kafka: LocalKafka, mechanism: str, user: str, password: str) -> Options:
    options = {"kafka.sasl.mechanism": mechanism}
    if mechanism != "OAUTHBEARER":
        jaas = login(_MODULES[mechanism], username=user, password=password)
        return options | {"kafka.sasl.jaas.config": jaas}
    return options | {
        "kafka.sasl.jaas.config": login(_OAUTH, clientId=user, clientSecret=password),
        "kafka.sasl.login.callback.handler.class": _OAUTH_HANDLER,
        "kafka.sasl.oauthbearer.token.endpoint.url": kafka.token_server.token_url,
    }
