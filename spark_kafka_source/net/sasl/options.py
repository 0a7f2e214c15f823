"""The options `kafka.sasl.*` of each family of mechanisms, and those in `sasl.jaas.config`.

https://kafka.apache.org/documentation/#security_sasl
"""

import re
from dataclasses import dataclass, field

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import jaas
from spark_kafka_source.net.sasl.jaas import JaasEntry
from spark_kafka_source.net.sasl.logins import AwsLogin, KerberosLogin, PasswordLogin, TokenLogin
from spark_kafka_source.net.sasl.tokens import URL_OPTION, RefreshSettings, TokenProvider
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import Settings

USERNAME = "kafka.sasl.username"
PASSWORD = "kafka.sasl.password"  # noqa: S105 - an option's name
SERVICE_NAME = "kafka.sasl.kerberos.service.name"

_CLIENT_ID = "kafka.sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "kafka.sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - likewise
_SCOPE = "kafka.sasl.oauthbearer.scope"
_HEADER_URLENCODE = "kafka.sasl.oauthbearer.header.urlencode"
_WINDOW_FACTOR = "kafka.sasl.login.refresh.window.factor"
_WINDOW_JITTER = "kafka.sasl.login.refresh.window.jitter"
_MIN_PERIOD = "kafka.sasl.login.refresh.min.period.seconds"
_BUFFER = "kafka.sasl.login.refresh.buffer.seconds"
_CONNECT_TIMEOUT = "kafka.sasl.login.connect.timeout.ms"
_READ_TIMEOUT = "kafka.sasl.login.read.timeout.ms"
_RETRY_BACKOFF = "kafka.sasl.login.retry.backoff.ms"
_RETRY_BACKOFF_MAX = "kafka.sasl.login.retry.backoff.max.ms"

LOGIN_OPTIONS = (
    jaas.OPTION,
    *(USERNAME, PASSWORD, SERVICE_NAME),
    *(URL_OPTION, _CLIENT_ID, _CLIENT_SECRET, _SCOPE, _HEADER_URLENCODE),
    *(_WINDOW_FACTOR, _WINDOW_JITTER, _MIN_PERIOD, _BUFFER),
    *(_CONNECT_TIMEOUT, _READ_TIMEOUT, _RETRY_BACKOFF, _RETRY_BACKOFF_MAX),
)
"""Every option that this module reads."""

_HOUR_MS = 3_600_000
_EXTENSION = "extension_"
# https://www.rfc-editor.org/rfc/rfc7628#section-3.1; "auth" is reserved for the token.
_EXTENSION_NAME = r"(?!auth$)[A-Za-z]+"
_EXTENSION_VALUE = r"[\x20-\x7E\t\r\n]+"
# Without these options, tokens would be signed for another identity than the user means.
_AWS_ELSEWHERE = (
    "awsRoleExternalId",
    "awsRoleAccessKeyId",
    "awsRoleSecretAccessKey",
    "awsRoleSessionToken",
    "awsStsRegion",
)


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options of one source, and its login module, if there is one."""

    settings: Settings = field(repr=False)
    entry: JaasEntry | None
    token_provider: TokenProvider | None = None

    def either(self, option: str, jaas_name: str) -> str:
        """Return the option's value, or the login module's; "" if neither is given.

        Raises `ConfigurationError` if they differ, and for text that cannot be encoded as UTF-8.
        """
        text = self.settings.text(option, "")
        of_entry = self.of_entry(jaas_name) or ""
        if text and of_entry and text != of_entry:
            raise ConfigurationError(
                option, f"differs from {jaas_name!r} in '{jaas.OPTION}'", "Give one of them"
            )
        return _checked_text(option if text else jaas.OPTION, text or of_entry)

    def of_entry(self, jaas_name: str) -> str | None:
        """Return the value in the login module."""
        return self.entry.text(jaas_name) if self.entry else None


def password_login(given: GivenOptions) -> PasswordLogin:
    """Return the login for PLAIN or SCRAM. Raises `ConfigurationError` if a part is missing."""
    username, password = given.either(USERNAME, "username"), given.either(PASSWORD, "password")
    for option, jaas_name, text in (
        (USERNAME, "username", username),
        (PASSWORD, "password", password),
    ):
        if not text:
            raise ConfigurationError(
                option, "is missing or empty", f"Give it, or {jaas_name!r} in '{jaas.OPTION}'"
            )
    token_auth = given.entry is not None and given.entry.boolean("tokenauth")
    return PasswordLogin(username, Secret(password), token_auth)


def token_login(given: GivenOptions) -> TokenLogin:
    """Return the login for OAUTHBEARER, from a token endpoint if given, else from a provider.

    Raises `ConfigurationError` if there is neither.
    """
    source: TokenProvider | None = given.token_provider
    if given.settings.text(URL_OPTION, ""):
        source = _token_endpoint(given)
    if source is None:
        raise ConfigurationError(
            URL_OPTION,
            "is missing, and no token provider was registered",
            "Give it, or a `token_provider`, which Spark has from `spark_kafka_source.register`",
        )
    return TokenLogin(source, refresh_settings(given.settings), _extensions(given.entry))


def aws_login(given: GivenOptions) -> AwsLogin:
    """Return the login for AWS_MSK_IAM.

    Raises `ConfigurationError` for what the signer cannot do.
    """
    for name in _AWS_ELSEWHERE:
        if given.of_entry(name) is not None:
            raise ConfigurationError(
                jaas.OPTION, f"gives {name!r}, which has no use here", "Use a profile that says it"
            )
    profile, role_arn = given.of_entry("awsProfileName"), given.of_entry("awsRoleArn")
    if profile and role_arn:
        raise ConfigurationError(
            jaas.OPTION, "gives 'awsProfileName' and 'awsRoleArn'", "Give one of them"
        )
    refresh = refresh_settings(given.settings)
    return AwsLogin(refresh, profile, role_arn, given.of_entry("awsRoleSessionName"))


def kerberos_login(given: GivenOptions) -> KerberosLogin:
    """Return the login for GSSAPI.

    Raises `ConfigurationError` if a keytab is demanded but not given.
    """
    service_name = given.either(SERVICE_NAME, "serviceName") or KerberosLogin().service_name
    entry = given.entry
    if entry is None:
        return KerberosLogin(service_name)
    keytab = entry.text("keyTab") if entry.boolean("useKeyTab") else None
    if entry.boolean("useKeyTab") and not keytab:
        raise ConfigurationError(
            jaas.OPTION, "says 'useKeyTab' and gives no 'keyTab'", "Give the keytab's path"
        )
    # As in Java's module, existing tickets count more than the keytab.
    ticket_cache = entry.text("ticketCache") if entry.boolean("useTicketCache") else None
    return KerberosLogin(
        service_name,
        entry.text("principal"),
        None if ticket_cache else keytab,
        ticket_cache,
    )


def refresh_settings(settings: Settings) -> RefreshSettings:
    """Return the settings for the renewal of tokens, within the limits of Kafka's own client."""
    default = RefreshSettings()
    return RefreshSettings(
        _fraction(settings, _WINDOW_FACTOR, default.window_factor, 0.5, 1.0),
        _fraction(settings, _WINDOW_JITTER, default.window_jitter, 0.0, 0.25),
        settings.integer(_MIN_PERIOD, default.min_period_seconds, maximum=900),
        settings.integer(_BUFFER, default.buffer_seconds, maximum=3600),
    )


def _token_endpoint(given: GivenOptions) -> TokenProvider:
    # Only those with an endpoint import an HTTP client.
    from spark_kafka_source.net.sasl.token_endpoint import (  # noqa: PLC0415
        TokenEndpoint,
        token_endpoint_url,
    )

    settings = given.settings
    client_id = given.either(_CLIENT_ID, "clientId")
    client_secret = given.either(_CLIENT_SECRET, "clientSecret")
    for option, text in ((_CLIENT_ID, client_id), (_CLIENT_SECRET, client_secret)):
        if not text:
            raise ConfigurationError(
                option, "is missing or empty", f"Give it along with '{URL_OPTION}'"
            )
    return TokenEndpoint(
        url=token_endpoint_url(settings.text(URL_OPTION, "").strip()),
        client_id=client_id,
        client_secret=Secret(client_secret),
        scope=given.either(_SCOPE, "scope"),
        urlencode_header=settings.boolean(_HEADER_URLENCODE, False),
        connect_timeout_ms=_span_ms(settings, _CONNECT_TIMEOUT, 10_000, minimum=1),
        read_timeout_ms=_span_ms(settings, _READ_TIMEOUT, 10_000, minimum=1),
        retry_backoff_ms=_span_ms(settings, _RETRY_BACKOFF, 100),
        retry_backoff_max_ms=_span_ms(settings, _RETRY_BACKOFF_MAX, 10_000),
    )


def _extensions(entry: JaasEntry | None) -> tuple[tuple[str, str], ...]:
    found = []
    for option in entry.options if entry else ():
        if not option.startswith(_EXTENSION):
            continue
        name, value = option.removeprefix(_EXTENSION), entry.text(option) if entry else None
        is_named = re.fullmatch(_EXTENSION_NAME, name)
        if not is_named or not re.fullmatch(_EXTENSION_VALUE, value or ""):
            raise ConfigurationError(
                jaas.OPTION,
                "has an 'extension_...' that cannot be sent",
                "Its name has letters only and is not 'auth', its value is printable ASCII",
            )
        found.append((name, value or ""))
    return tuple(found)


def _checked_text(option: str, text: str) -> str:
    """Return the text, if it is valid.

    PLAIN separates its fields by NUL, and UTF-8 cannot encode half a character.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(option, "is not Unicode text", "Give it in UTF-8") from None
    if "\0" in text:
        raise ConfigurationError(option, "has the character NUL", "Leave that out")
    return text


def _span_ms(settings: Settings, option: str, default: int, *, minimum: int = 0) -> int:
    return settings.integer(option, default, minimum=minimum, maximum=_HOUR_MS)


def _fraction(
    settings: Settings, option: str, default: float, minimum: float, maximum: float
) -> float:
    text = settings.text(option, str(default)).strip()
    found = float(text) if re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,9}", text, re.ASCII) else -1.0
    if not minimum <= found <= maximum:
        raise ConfigurationError(
            option, "is out of bounds", f"Give a number from {minimum} to {maximum}"
        )
    return found
