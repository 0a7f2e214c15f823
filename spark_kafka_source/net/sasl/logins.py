"""What a client shows to be let in, for each family of mechanisms."""

from dataclasses import dataclass, field

from spark_kafka_source.net.sasl.tokens import RefreshSettings, TokenProvider
from spark_kafka_source.secret import Secret


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """A name and a password; `token_auth` says that they are those of a delegation token."""

    # Who takes one for the other shows neither.
    username: str = field(repr=False)
    password: Secret
    token_auth: bool = False


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """Bearer tokens, and the extensions that are sent along (KIP-342)."""

    # A provider is the user's own, and may show more of itself than it should.
    source: TokenProvider = field(repr=False)
    refresh: RefreshSettings
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class AwsLogin:
    """Credentials of AWS: the default ones, those of a profile, or those of a role."""

    refresh: RefreshSettings
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str | None = None


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """Tickets: of the default cache, of the one named, or got with the keys of a keytab."""

    service_name: str = "kafka"
    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None


Login = PasswordLogin | TokenLogin | AwsLogin | KerberosLogin
