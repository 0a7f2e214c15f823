"""The options `kafka.sasl.*` of each family of mechanisms, and those in `sasl.jaas.config`.

https://kafka.apache.org/documentation/#security_sasl
"""

import re
from dataclasses import dataclass, field
from typing import Any

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import jaas
from spark_kafka_source.net.sasl.jaas import JaasEntry
from spark_kafka_source.net.sasl.logins import (
    AwsLogin,
    KerberosLogin,
    PasswordLogin,
    TokenEndpoint,
    TokenLogin,
)
from spark_kafka_source.net.sasl.tokens import URL_OPTION, RefreshSettings, TokenProvider
from spark_kafka_source.options.declaration import Option, Options, Settings, named, options_of
from spark_kafka_source.options.kinds import secret, string
from spark_kafka_source.secret import Secret

_INSTEAD = "with OAUTHBEARER; or `clientId`, `clientSecret` and `scope` in `kafka.sasl.jaas.config`"

_USERNAME = Option("kafka.sasl.username", string(), "for PLAIN and SCRAM")
_PASSWORD = Option("kafka.sasl.password", secret(), "for PLAIN and SCRAM")
_JAAS = Option(
    "kafka.sasl.jaas.config",
    secret(),
    "a login module and its options, in place of others; as in Java",
)
_URL = Option(
    "kafka.sasl.oauthbearer.token.endpoint.url",
    string(takes="`https://…`"),
    "where to ask for tokens",
)
_CLIENT_ID = Option("kafka.sasl.oauthbearer.client.credentials.client.id", string(), _INSTEAD)
_CLIENT_SECRET = Option(
    "kafka.sasl.oauthbearer.client.credentials.client.secret", secret(), _INSTEAD
)
_SCOPE = Option("kafka.sasl.oauthbearer.scope", string(), _INSTEAD)
(SERVICE_NAME,) = options_of(KerberosLogin).values()

LOGIN_OPTIONS: Options = {
    **named(_USERNAME, _PASSWORD, _JAAS, SERVICE_NAME, _URL, _CLIENT_ID, _CLIENT_SECRET, _SCOPE),
    **options_of(TokenEndpoint),
    **options_of(RefreshSettings),
}
"""Every option that this module reads."""

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

    def either(self, option: Option[Any], jaas_name: str) -> str:
        """Return the option's value, or the login module's; "" if neither is given.

        Raises `ConfigurationError` if they differ, and for text that cannot be encoded as UTF-8.
        """
        text = self.settings.text(option.name)
        of_entry = self.of_entry(jaas_name) or ""
        if text and of_entry and text != of_entry:
            raise ConfigurationError(
                option.name, f"differs from {jaas_name!r} in '{jaas.OPTION}'", "Give one of them"
            )
        return _checked_text(option.name if text else jaas.OPTION, text or of_entry)

    def of_entry(self, jaas_name: str) -> str | None:
        """Return the value in the login module."""
        return self.entry.text(jaas_name) if self.entry else None


def password_login(given: GivenOptions) -> PasswordLogin:
    """Return the login for PLAIN or SCRAM. Raises `ConfigurationError` if a part is missing."""
    username, password = given.either(_USERNAME, "username"), given.either(_PASSWORD, "password")
    for option, jaas_name, text in (
        (_USERNAME, "username", username),
        (_PASSWORD, "password", password),
    ):
        if not text:
            raise ConfigurationError(
                option.name, "is missing or empty", f"Give it, or {jaas_name!r} in '{jaas.OPTION}'"
            )
        if text.endswith("\n"):  # Brokers would refuse it, and some lock the account.
            raise ConfigurationError(
                option.name,
                "ends with a newline",
                "Leave the newline out: files often end with one",
            )
    token_auth = given.entry is not None and given.entry.boolean("tokenauth")
    return PasswordLogin(username, Secret(password), token_auth)


def token_login(given: GivenOptions) -> TokenLogin:
    """Return the login for OAUTHBEARER, from a token endpoint if given, else from a provider.

    Raises `ConfigurationError` if there is neither.
    """
    source: TokenProvider | None = given.token_provider
    if given.settings.text(URL_OPTION):
        source = _token_endpoint(given)
    if source is None:
        raise ConfigurationError(
            URL_OPTION,
            "is missing, and no token provider was registered",
            "Give it, or a `token_provider`, which Spark has from `spark_kafka_source.register`",
        )
    return TokenLogin(source, given.settings.read(RefreshSettings), _extensions(given.entry))


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
    refresh = given.settings.read(RefreshSettings)
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


def _token_endpoint(given: GivenOptions) -> TokenProvider:
    # Only those with an endpoint import an HTTP client.
    from spark_kafka_source.net.sasl.token_endpoint import token_endpoint_url  # noqa: PLC0415

    settings = given.settings
    client_id = given.either(_CLIENT_ID, "clientId")
    client_secret = given.either(_CLIENT_SECRET, "clientSecret")
    for option, text in ((_CLIENT_ID, client_id), (_CLIENT_SECRET, client_secret)):
        if not text:
            raise ConfigurationError(
                option.name, "is missing or empty", f"Give it along with '{URL_OPTION}'"
            )
    return settings.read(
        TokenEndpoint,
        url=token_endpoint_url(settings.text(URL_OPTION).strip()),
        client_id=client_id,
        client_secret=Secret(client_secret),
        scope=given.either(_SCOPE, "scope"),
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
