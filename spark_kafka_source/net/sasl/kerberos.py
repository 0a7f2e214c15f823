"""GSSAPI with Kerberos tickets, https://www.rfc-editor.org/rfc/rfc4752.

It needs the extra `gssapi`. After the tickets are accepted, the two sides agree on no security
layer: use TLS for that.
"""

import hashlib
from pathlib import Path
from typing import Any

from spark_kafka_source.net.sasl.errors import AuthenticationError, library
from spark_kafka_source.net.sasl.logins import KerberosLogin

MECHANISM = "GSSAPI"

_PACKAGE = "gssapi, with Kerberos's own libraries below it"
_NO_LAYER = 1
_OFFER_BYTES = 4
_LOOK_AT_TICKETS = (
    "Check the ticket ('klist') or the keytab and principal in 'kafka.sasl.jaas.config',"
    " and 'kafka.sasl.kerberos.service.name'"
)
_LOOK_AT_KEYS = (
    "Check that the keytab in 'kafka.sasl.jaas.config' has this principal's keys ('klist -k') and "
    "that they are those of today, its realm in krb5.conf, and 'kafka.sasl.kerberos.service.name'"
)


class Gssapi:
    """One authentication by GSSAPI, to the service on `host`.

    Raises `ConfigurationError` if python-gssapi is not installed, and `AuthenticationError` if
    there is no ticket.
    """

    name = MECHANISM

    def __init__(self, login: KerberosLogin, host: str) -> None:
        # Any: the library and its types may not be installed.
        self._library: Any = _library()
        self._service = f"{login.service_name}@{host}"
        self._login = login
        if login.keytab:
            self._check_keytab(login.keytab)
        self._context = self._attempt(lambda: self._new_context(login))
        self._agreed = False

    def first(self) -> bytes:
        """Return the first token, with the service ticket."""
        return self._step(None)

    def next(self, challenge: bytes) -> bytes | None:
        """Return the next token, then the choice of no security layer, then None.

        Raises `AuthenticationError` for a token that is refused, or a layer that the broker
        demands.
        """
        if not self._attempt(lambda: self._context.complete):
            return self._step(challenge)
        if not self._agreed:
            self._agreed = True
            return self._without_layer(challenge)
        if challenge:
            raise self._refused("the broker sends more after the end of the exchange", "")
        return None

    def _new_context(self, login: KerberosLogin) -> Any:
        library = self._library
        return library.SecurityContext(
            name=library.Name(self._service, library.NameType.hostbased_service),
            creds=_credentials(library, login),
            flags=[
                library.RequirementFlag.mutual_authentication,
                library.RequirementFlag.integrity,
            ],
            usage="initiate",
        )

    def _step(self, token: bytes | None) -> bytes:
        return self._attempt(lambda: self._context.step(token)) or b""

    def _without_layer(self, challenge: bytes) -> bytes:
        offer = self._attempt(lambda: self._context.unwrap(challenge)).message
        if len(offer) != _OFFER_BYTES:
            raise self._refused(f"the broker offers layers in {len(offer)} bytes, not in 4", "")
        if not offer[0] & _NO_LAYER:
            raise self._refused(
                "the broker demands a security layer of GSSAPI's own",
                "Use 'kafka.security.protocol' SASL_SSL, and allow 'auth' in the broker's SASL QOP",
            )
        choice = bytes([_NO_LAYER, 0, 0, 0])
        return bytes(self._attempt(lambda: self._context.wrap(choice, False)).message)

    def _attempt(self, call: Any) -> Any:
        try:
            return call()
        # NotImplementedError: the system's Kerberos knows only the default cache.
        except (self._library.exceptions.GSSError, NotImplementedError) as error:
            raise self._refused(f"{self._service}{self._by_keys()}: {error}", "") from None

    def _check_keytab(self, keytab: str) -> None:
        """Check that the keytab can be read.

        Kerberos would only say that there is no ticket cache.
        """
        try:
            with Path(keytab.removeprefix("FILE:")).open("rb"):
                return
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            expected = "Give in 'kafka.sasl.jaas.config' one that the driver and executors can read"
            raise self._refused(
                f"the keytab {keytab!r} cannot be read: {reason}", expected
            ) from None

    def _by_keys(self) -> str:
        login = self._login
        return f", as {login.principal!r} by the keytab {login.keytab!r}" if login.keytab else ""

    def _refused(self, found: str, expected: str) -> AuthenticationError:
        default = _LOOK_AT_KEYS if self._login.keytab else _LOOK_AT_TICKETS
        return AuthenticationError(self.name, found, expected or default)


def _credentials(library: Any, login: KerberosLogin) -> Any:
    """Return the named credentials. None means the default cache."""
    if not (login.principal or login.keytab or login.ticket_cache):
        return None
    name = None
    if login.principal:
        name = library.Name(login.principal, library.NameType.kerberos_principal)
    return library.Credentials(name=name, usage="initiate", store=_store(login) or None)


def _store(login: KerberosLogin) -> dict[str, str]:
    """Return the store of the credentials, by key.

    https://web.mit.edu/kerberos/krb5-latest/doc/appdev/gssapi.html#credential-store-extensions
    """
    store = {}
    if login.ticket_cache:
        store["ccache"] = login.ticket_cache
    if login.keytab:
        # Its tickets stay in this process, in one cache for each identity.
        identity = hashlib.sha256(f"{login.principal}\0{login.keytab}".encode()).hexdigest()
        store = {"ccache": f"MEMORY:spark-kafka-source-{identity}", "client_keytab": login.keytab}
    return store


def _library() -> Any:
    return library("gssapi", mechanism=MECHANISM, package=_PACKAGE, extra="gssapi")
