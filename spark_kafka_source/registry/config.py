"""Addresses of the schema registry, and our credentials for it: the options `schema.registry.*`."""

import base64
from dataclasses import dataclass
from functools import cache

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import TlsSettings, tls_context
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    named,
    option,
    options_of,
)
from spark_kafka_source.options.judgement import refuse_unknown
from spark_kafka_source.options.kinds import int32, secret, string
from spark_kafka_source.registry.url import URL_OPTION, RegistryUrl, parse_urls
from spark_kafka_source.secret import Secret
from spark_kafka_source.spelling import as_written

logger = logger_of(__name__)

PREFIX = "schema.registry."
"""The prefix of the registry's option names."""

USER_INFO_OPTION = f"{PREFIX}basic.auth.user.info"
USER_OPTION = f"{PREFIX}basic.auth.user"
PASSWORD_OPTION = f"{PREFIX}basic.auth.password"
TOKEN_OPTION = f"{PREFIX}bearer.auth.token"

GLUE_REGION = f"{PREFIX}glue.region"

_USER_INFO = f"Give 'user:password', or '{USER_OPTION}' and '{PASSWORD_OPTION}'"


def _timeout() -> int:
    return option(
        "schema.registry.timeout.ms",
        int32(30_000, minimum=1),
        "how long to ask for a schema, at all urls and with all retries",
    )


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """Configuration of a `RegistryClient`. Picklable and hashable; its repr shows no secret."""

    urls: tuple[RegistryUrl, ...]
    tls: TlsSettings | None = None
    """None if no url is https."""
    basic_auth_user_info: Secret = option(
        "schema.registry.basic.auth.user.info", secret(), "`user:password`"
    )
    basic_auth_user: str = option(
        "schema.registry.basic.auth.user",
        string(),
        "the user, with a password in an option of its own",
    )
    basic_auth_password: Secret = option(
        "schema.registry.basic.auth.password",
        secret(),
        "the password; Spark hides options with this word in their names",
    )
    bearer_auth_token: Secret = option(
        "schema.registry.bearer.auth.token", secret(), "a token, in place of a user"
    )
    timeout_ms: int = _timeout()

    @classmethod
    def from_settings(cls, settings: Settings) -> "RegistryConfig":
        """Read the configuration, and load certificates and keys so that their errors show at once.

        Raises `ConfigurationError` for a missing url, for values that are unusable or contradict
        each other, and for an option without effect.
        """
        # A misspelt option that is ignored is worse than an error.
        refuse_unknown(settings, PREFIX, REGISTRY_OPTIONS)
        if settings.has(GLUE_REGION):
            expected = "Set 'value.framing' or 'key.framing' to 'glue', or leave it out"
            raise ConfigurationError(GLUE_REGION, "is only for AWS Glue's registry", expected)
        urls = parse_urls(settings.text(URL_OPTION))
        tls = (
            TlsSettings.from_settings(settings, PREFIX)
            if any(url.has_tls for url in urls)
            else None
        )
        if tls is None:
            _refuse_without_tls(settings)
        else:
            tls_context(tls)
        config = settings.read(cls, urls=urls, tls=tls)
        for url in urls:
            if config.authorization(url) and not url.has_tls:
                _warn_of_no_tls(str(url))
        return config

    def authorization(self, url: RegistryUrl) -> Secret:
        """Return the header `Authorization` for this url, empty if no credentials are given."""
        return Secret(_authorization(self, url))

    def without_secrets(self, text: str) -> str:
        """Replace our credentials in a registry's answer by `...`."""
        known = [self.basic_auth_user_info, self.basic_auth_password, self.bearer_auth_token]
        known += [url.user_info for url in self.urls]
        texts = [each.reveal() for each in known]
        parts = [*texts, *(each.partition(":")[2] for each in texts)]
        headers = (self.authorization(url).reveal() for url in self.urls)
        parts += [header.partition(" ")[2] for header in headers]
        for part in sorted(filter(None, parts), key=len, reverse=True):
            text = text.replace(part, "...")
        return text


@dataclass(frozen=True, slots=True)
class GlueConfig:
    """Configuration of a `GlueClient`. The credentials are those that AWS's library finds."""

    region: str = option(
        "schema.registry.glue.region",
        string(),
        "the AWS region of Glue's registry; by default that of the environment",
    )
    timeout_ms: int = _timeout()

    @classmethod
    def from_settings(cls, settings: Settings) -> "GlueConfig":
        """Read the configuration. Raises `ConfigurationError` for another registry's options."""
        own = options_of(cls)
        for name in sorted(settings.values):
            if name.startswith(PREFIX) and name not in own:
                found = "has no effect where 'value.framing' or 'key.framing' is 'glue'"
                expected = "Leave it out: AWS's library finds the address and the credentials"
                raise ConfigurationError(name, found, expected)
        return settings.read(cls)


_URL = Option(
    "schema.registry.url",
    string(takes="`https://host:port`, or several separated by commas"),
    "the schema registry; if one address does not answer, the next is asked",
)
REGISTRY_TLS_OPTIONS: Options = options_of(TlsSettings, PREFIX)
"""The options of the registry's TLS, with the same names as those of the brokers."""

REGISTRY_OPTIONS: Options = {
    **named(_URL),
    **options_of(RegistryConfig),
    **options_of(GlueConfig),
    **REGISTRY_TLS_OPTIONS,
}
"""The options that `RegistryConfig.from_settings` reads."""


def _refuse_without_tls(settings: Settings) -> None:
    for name in sorted(settings.values):
        if name in REGISTRY_TLS_OPTIONS:
            found = f"has no effect, since no url of '{URL_OPTION}' begins with https"
            raise ConfigurationError(name, found, "Leave it out, or give a url of https")


def _authorization(config: RegistryConfig, url: RegistryUrl) -> str:
    """Return the header. Only one of the places for credentials may be used."""
    given = {
        URL_OPTION: url.user_info.reveal(),
        USER_INFO_OPTION: config.basic_auth_user_info.reveal(),
        USER_OPTION: _user_and_password(config),
        TOKEN_OPTION: config.bearer_auth_token.reveal(),
    }
    options = [option for option, text in given.items() if text]
    if len(options) > 1:
        found = f"is given as well as '{options[0]}'"
        if options[0] == URL_OPTION:
            found = f"is given as well as a user in '{URL_OPTION}'"
        raise ConfigurationError(options[1], found, "Give one of them")
    if given[TOKEN_OPTION]:
        return f"Bearer {_token(given[TOKEN_OPTION])}"
    if not options:
        return ""
    text = given[options[0]]
    if ":" not in text:
        found = "has a user without a password" if options[0] == URL_OPTION else "has no colon"
        raise ConfigurationError(options[0], found, _USER_INFO)
    return "Basic " + base64.b64encode(text.encode(errors="replace")).decode()


def _user_and_password(config: RegistryConfig) -> str:
    user, password = config.basic_auth_user.strip(), config.basic_auth_password
    if password and not user:
        found = f"has no effect without '{USER_OPTION}'"
        raise ConfigurationError(PASSWORD_OPTION, found, "Give both, or neither")
    if ":" in user:
        # The value is not shown: it may be a password that belongs elsewhere.
        found, expected = "has a colon, which a user name cannot have", f"Use '{USER_INFO_OPTION}'"
        raise ConfigurationError(USER_OPTION, found, expected)
    if user and not password:
        found = f"is missing, where '{USER_OPTION}' is given"
        raise ConfigurationError(PASSWORD_OPTION, found, "Give both, or neither")
    return f"{user}:{password.reveal()}" if user else ""


def _token(text: str) -> str:
    if not (text.isascii() and text.isprintable()) or " " in text:
        found = "has a character that a token cannot have"
        raise ConfigurationError(TOKEN_OPTION, found, "Give the token alone, without 'Bearer'")
    return text


# Spark reads the options of a query many times.
@cache
def _warn_of_no_tls(url: str) -> None:
    logger.warning(
        "%s: without https anyone on the way can read the password or the token for the registry; "
        "see %s",
        url,
        as_written(f"'{URL_OPTION}'"),
    )
