"""The SASL mechanism and credentials: the options `kafka.sasl.*`, read once on the driver."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net.sasl import jaas
from spark_kafka_source.net.sasl.jaas import JaasEntry, parse_jaas, without_shading
from spark_kafka_source.net.sasl.logins import Login
from spark_kafka_source.net.sasl.options import (
    LOGIN_OPTIONS,
    SERVICE_NAME,
    GivenOptions,
    aws_login,
    kerberos_login,
    password_login,
    token_login,
)
from spark_kafka_source.net.sasl.tokens import TokenProvider
from spark_kafka_source.options.declaration import Option, Options, Settings, named
from spark_kafka_source.options.kinds import string
from spark_kafka_source.options.unknown import if_resembling
from spark_kafka_source.secret import Secret
from spark_kafka_source.spelling import as_written

logger = logger_of(__name__)


class SaslMechanism(StrEnum):
    """The values of `kafka.sasl.mechanism`."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    AWS_MSK_IAM = "AWS_MSK_IAM"
    GSSAPI = "GSSAPI"


_CLASS = string(takes="the name of a Java class")
_OF_JAVA = "Kafka's and Amazon's classes for tokens tell the mechanism; others are refused"
_MECHANISM = Option(
    "kafka.sasl.mechanism",
    string(takes=", ".join(f"`{each}`" for each in SaslMechanism)),
    "how the client logs in; needed where the other options do not tell it",
)
_MECHANISMS = Option(
    "kafka.sasl.mechanisms", string(takes="as `kafka.sasl.mechanism`"), "librdkafka's name for it"
)
_CLIENT_HANDLER = Option("kafka.sasl.client.callback.handler.class", _CLASS, _OF_JAVA)
_LOGIN_HANDLER = Option("kafka.sasl.login.callback.handler.class", _CLASS, _OF_JAVA)
_LOGIN_CLASS = Option("kafka.sasl.login.class", _CLASS, _OF_JAVA)
_TOKEN_RETRIEVER = Option("kafka.sasl.oauthbearer.jwt.retriever.class", _CLASS, _OF_JAVA)

MECHANISM_OPTION = _MECHANISM.name

SASL_OPTIONS: Options = {
    **named(_MECHANISM, _MECHANISMS),
    **LOGIN_OPTIONS,
    **named(_TOKEN_RETRIEVER, _LOGIN_CLASS, _LOGIN_HANDLER, _CLIENT_HANDLER),
}
"""Every option that this module reads or refuses."""

_READERS: dict[SaslMechanism, Callable[[GivenOptions], Login]] = {
    SaslMechanism.PLAIN: password_login,
    SaslMechanism.SCRAM_SHA_256: password_login,
    SaslMechanism.SCRAM_SHA_512: password_login,
    SaslMechanism.OAUTHBEARER: token_login,
    SaslMechanism.AWS_MSK_IAM: aws_login,
    SaslMechanism.GSSAPI: kerberos_login,
}
_LOGIN_MODULES: dict[str, tuple[SaslMechanism, ...]] = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": (SaslMechanism.PLAIN,),
    "org.apache.kafka.common.security.scram.ScramLoginModule": (
        SaslMechanism.SCRAM_SHA_256,
        SaslMechanism.SCRAM_SHA_512,
    ),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": (
        SaslMechanism.OAUTHBEARER,
        SaslMechanism.AWS_MSK_IAM,
    ),
    "software.amazon.msk.auth.iam.IAMLoginModule": (SaslMechanism.AWS_MSK_IAM,),
    "com.sun.security.auth.module.Krb5LoginModule": (SaslMechanism.GSSAPI,),
    "com.ibm.security.auth.module.Krb5LoginModule": (SaslMechanism.GSSAPI,),
}
# Java classes that are not needed: this package does their work without an option.
_KAFKA_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_HANDLERS = {
    f"{_KAFKA_OAUTH}.OAuthBearerLoginCallbackHandler": SaslMechanism.OAUTHBEARER,
    f"{_KAFKA_OAUTH}.secured.OAuthBearerLoginCallbackHandler": SaslMechanism.OAUTHBEARER,
    f"{_KAFKA_OAUTH}.DefaultJwtRetriever": SaslMechanism.OAUTHBEARER,
    f"{_KAFKA_OAUTH}.ClientCredentialsJwtRetriever": SaslMechanism.OAUTHBEARER,
    "software.amazon.msk.auth.iam.IAMClientCallbackHandler": SaslMechanism.AWS_MSK_IAM,
    "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler": SaslMechanism.AWS_MSK_IAM,
}
_CLASS_NAME = r"(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*"
# Mechanisms of other systems. A refusal may show these names.
_MECHANISMS_OF_OTHERS = ("ANONYMOUS", "CRAM-MD5", "DIGEST-MD5", "EXTERNAL", "KERBEROS", "NTLM")
_SEEN_ON_THE_WAY = {
    SaslMechanism.PLAIN: "password",
    SaslMechanism.OAUTHBEARER: "token",
    SaslMechanism.AWS_MSK_IAM: "token",
}


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """A mechanism and its credentials. Picklable and hashable; shows no secret."""

    mechanism: SaslMechanism
    login: Login

    @classmethod
    def from_settings(
        cls, settings: Settings, *, tls: bool, token_provider: TokenProvider | None = None
    ) -> "SaslSettings":
        """Read `kafka.sasl.*`. `tls` says whether the connections are encrypted.

        OAUTHBEARER uses `token_provider` if there is no token endpoint. Logs a warning, once a
        process, for a password or token that others could read on the network. Raises
        `ConfigurationError` for options that are missing, unknown, or contradict each other.
        """
        _check_token_provider(token_provider)
        text = settings.text(jaas.OPTION)
        entry = parse_jaas(Secret(text)) if text.strip() else None
        mechanism = _mechanism(settings, entry)
        login = _READERS[mechanism](GivenOptions(settings, entry, token_provider))
        if not tls and mechanism in _SEEN_ON_THE_WAY:
            _warn_of_no_tls(mechanism)
        return cls(mechanism, login)


def _mechanism(settings: Settings, entry: JaasEntry | None) -> SaslMechanism:
    """Return the mechanism that is named, or the only one that the other options can mean."""
    named = _named(settings)
    handled = _handled(settings)
    of_module = _of_login_module(entry)
    if handled is SaslMechanism.AWS_MSK_IAM and named is SaslMechanism.OAUTHBEARER:
        # Amazon's signed tokens use this mechanism, too. The handler tells how tokens are made.
        named = handled
    if named and handled and named is not handled:
        raise ConfigurationError(
            MECHANISM_OPTION, f"is {named}, but a callback handler is for {handled}", "Give one"
        )
    mechanism = named or handled
    if mechanism and of_module and mechanism not in of_module:
        raise ConfigurationError(
            jaas.OPTION,
            f"has a login module for {' or '.join(of_module)}, but the mechanism is {mechanism}",
            f"Give the login module for it, or change '{MECHANISM_OPTION}'",
        )
    return mechanism or _implied(settings, entry, of_module)


def _implied(
    settings: Settings, entry: JaasEntry | None, of_module: tuple[SaslMechanism, ...]
) -> SaslMechanism:
    if SaslMechanism.OAUTHBEARER in of_module or len(of_module) == 1:
        return of_module[0]
    if entry is None and settings.text(SERVICE_NAME.name):
        return SaslMechanism.GSSAPI
    raise ConfigurationError(
        MECHANISM_OPTION, "is missing", f"Give one of {', '.join(of_module or SaslMechanism)}"
    )


def _named(settings: Settings) -> SaslMechanism | None:
    """Return the mechanism in Kafka's option, or in librdkafka's."""
    texts = {
        option.name: option.of(settings).strip().upper() for option in (_MECHANISM, _MECHANISMS)
    }
    given = {name: text for name, text in texts.items() if text}
    if len(set(given.values())) > 1:
        raise ConfigurationError(
            _MECHANISMS.name, f"differs from '{MECHANISM_OPTION}'", "Give one of them"
        )
    for name, text in given.items():
        if text not in set(SaslMechanism):
            known = ", ".join(SaslMechanism)
            raise ConfigurationError(
                name,
                "found {}",
                f"Give one of {known}",
                if_resembling(text, (*SaslMechanism, *_MECHANISMS_OF_OTHERS)),
            )
        return SaslMechanism(text)
    return None


def _of_login_module(entry: JaasEntry | None) -> tuple[SaslMechanism, ...]:
    if entry is None:
        return ()
    if entry.login_module not in _LOGIN_MODULES:
        # Not shown: the user may have put a password here.
        raise ConfigurationError(
            jaas.OPTION, "has an unknown login module", f"Give one of {', '.join(_LOGIN_MODULES)}"
        )
    return _LOGIN_MODULES[entry.login_module]


def _handled(settings: Settings) -> SaslMechanism | None:
    """Return the mechanism of the Java classes that are named. Unknown classes are refused."""
    found: dict[SaslMechanism, None] = {}
    for option in (_CLIENT_HANDLER, _LOGIN_HANDLER, _LOGIN_CLASS, _TOKEN_RETRIEVER):
        name = without_shading(option.of(settings).strip())
        if name and name not in _HANDLERS:
            raise ConfigurationError(
                option.name,
                "found {}, and Java classes cannot be run here",
                "Use 'kafka.sasl.oauthbearer.token.endpoint.url', the mechanism AWS_MSK_IAM, or"
                " a `token_provider`, which Spark has from `spark_kafka_source.register`",
                name if re.fullmatch(_CLASS_NAME, name) else Secret(name),
            )
        if name:
            found[_HANDLERS[name]] = None
    if len(found) > 1:
        raise ConfigurationError(
            _LOGIN_HANDLER.name, f"together with others it is for {' and '.join(found)}", "Give one"
        )
    return next(iter(found), None)


def _check_token_provider(token_provider: object) -> None:
    if token_provider is None:
        return
    if not isinstance(token_provider, TokenProvider):
        raise _unusable_provider("it has no method 'token', or no hash")
    try:
        hash(token_provider)
    except TypeError:
        raise _unusable_provider("one of its fields has no hash") from None


def _unusable_provider(fault: str) -> ConfigurationError:
    return ConfigurationError(
        "token_provider",
        f"cannot be used: {fault}",
        "Give a frozen dataclass with a method 'token' that returns a 'Token'",
    )


# Spark reads the options of a query many times.
@cache
def _warn_of_no_tls(mechanism: SaslMechanism) -> None:
    logger.warning(
        "%s without TLS sends the %s so that anyone on the way can read it; use %s SASL_SSL",
        mechanism,
        _SEEN_ON_THE_WAY[mechanism],
        as_written("'kafka.security.protocol'"),
    )
