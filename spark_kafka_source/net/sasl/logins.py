"""Credentials of a client, for each family of mechanisms."""

from dataclasses import dataclass, field

from spark_kafka_source.net.sasl.tokens import RefreshSettings, TokenProvider
from spark_kafka_source.secret import Secret


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

    service_name: str = "kafka"
    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None


Login = PasswordLogin | TokenLogin | AwsLogin | KerberosLogin
