"""Credentials of a client, for each family of mechanisms."""

from dataclasses import dataclass, field

from spark_kafka_source.net.sasl.tokens import RefreshSettings, Token, TokenProvider
from spark_kafka_source.options.declaration import option
from spark_kafka_source.options.kinds import boolean, int32, string
from spark_kafka_source.secret import Secret

_HOUR_MS = 3_600_000
_AT_THE_ENDPOINT = "at the token endpoint"


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """A name and a password. With `token_auth` they are those of a delegation token."""

    # A user may confuse the two options, so neither is shown.
    username: str = field(repr=False)
    password: Secret
    token_auth: bool = False


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """Bearer tokens, and the extensions that are sent with them (KIP-342)."""

    # A provider is the user's own code. Its repr may show more than it should.
    source: TokenProvider = field(repr=False)
    refresh: RefreshSettings
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class AwsLogin:
    """AWS credentials: the default ones, those of a profile, or those of a role."""

    refresh: RefreshSettings
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str | None = None


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """Kerberos tickets: of the default cache, of a named one, or obtained with a keytab."""

    service_name: str = option(
        "kafka.sasl.kerberos.service.name",
        string("kafka"),
        "with GSSAPI: the first part of brokers' principals",
    )
    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """A token endpoint, for a client that knows `client_secret`; see `token_endpoint_url`."""

    url: str
    client_id: str
    client_secret: Secret
    scope: str = ""
    urlencode_header: bool = option(
        "kafka.sasl.oauthbearer.header.urlencode",
        boolean(False),
        "encodes id and secret (RFC 6749)",
    )
    connect_timeout_ms: int = option(
        "kafka.sasl.login.connect.timeout.ms",
        int32(10_000, minimum=1, maximum=_HOUR_MS),
        _AT_THE_ENDPOINT,
    )
    read_timeout_ms: int = option(
        "kafka.sasl.login.read.timeout.ms",
        int32(10_000, minimum=1, maximum=_HOUR_MS),
        _AT_THE_ENDPOINT,
    )
    retry_backoff_ms: int = option(
        "kafka.sasl.login.retry.backoff.ms", int32(100, maximum=_HOUR_MS), _AT_THE_ENDPOINT
    )
    retry_backoff_max_ms: int = option(
        "kafka.sasl.login.retry.backoff.max.ms", int32(10_000, maximum=_HOUR_MS), _AT_THE_ENDPOINT
    )

    def token(self) -> Token:
        """Return a new token; see `request_token`."""
        # Only a client with an endpoint imports an HTTP client.
        from spark_kafka_source.net.sasl.token_endpoint import request_token  # noqa: PLC0415

        return request_token(self)


Login = PasswordLogin | TokenLogin | AwsLogin | KerberosLogin
