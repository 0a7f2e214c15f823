"""The causes of TLS failures, and the options that matter."""

import ssl
from dataclasses import dataclass

from spark_kafka_source.errors import RemoteError
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.security import PROTOCOL_OPTION, TlsSettings

_TRUST = (
    "Give the authority of the {peer}'s certificate in '{prefix}ssl.truststore.location' or "
    "'{prefix}ssl.truststore.certificates'"
)


@dataclass(frozen=True, slots=True)
class Peer:
    """A kind of server, with advice for a certificate of another name and a port without TLS."""

    name: str
    other_name: str
    no_tls: str


BROKER = Peer(
    "broker",
    "Use a name that it has in 'kafka.bootstrap.servers' and the brokers' 'advertised.listeners'",
    f"Use the port of its TLS listener, or another '{PROTOCOL_OPTION}'",
)

_UNTRUSTED = "no authority that is trusted here vouches for the {peer}'s certificate"
_OTHER_NAME = (
    "the {peer}'s certificate is for another name",
    "{other_name}; '{prefix}ssl.endpoint.identification.algorithm' says whether names are checked",
)
# https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/
_BY_VERIFY_CODE = {
    9: ("the {peer}'s certificate is not valid yet", "Check the clocks, and renew it"),
    10: ("the {peer}'s certificate has expired", "Renew it on the {peer}"),
    18: (_UNTRUSTED, _TRUST),
    19: (_UNTRUSTED, _TRUST),
    20: (_UNTRUSTED, _TRUST),
    21: (_UNTRUSTED, _TRUST),
    62: _OTHER_NAME,
    64: _OTHER_NAME,
}
_REFUSED = ("the {peer}'s certificate is refused", _TRUST)
_NO_TLS = ("the server does not speak TLS there", "{no_tls}")
_KEY_WANTED = (
    "the {peer} demands a client certificate",
    "Give it by '{prefix}ssl.keystore.location', or by '{prefix}ssl.keystore.certificate.chain'"
    " and '{prefix}ssl.keystore.key'",
)
_KEY_REFUSED = (
    "the {peer} refuses the client's certificate",
    "Give one that it trusts by '{prefix}ssl.keystore.location', or by "
    "'{prefix}ssl.keystore.certificate.chain' and '{prefix}ssl.keystore.key'",
)
_NO_VERSION = (
    "the {peer} speaks no version of TLS that is enabled here",
    "See '{prefix}ssl.enabled.protocols'; nothing older than TLSv1.2 is spoken",
)
_NO_CIPHER_SUITE = (
    "there is no cipher suite that both sides take",
    "See '{prefix}ssl.cipher.suites', and those of the {peer}",
)
# Parts of OpenSSL's reasons. Their beginnings differ between versions.
_BY_REASON = {
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "HTTP_REQUEST": _NO_TLS,
    "UNKNOWN_PROTOCOL": _NO_TLS,
    "ALERT_CERTIFICATE_REQUIRED": _KEY_WANTED,
    "ALERT_BAD_CERTIFICATE": _KEY_REFUSED,
    "ALERT_CERTIFICATE": _KEY_REFUSED,
    "ALERT_UNSUPPORTED_CERTIFICATE": _KEY_REFUSED,
    "ALERT_UNKNOWN_CA": _KEY_REFUSED,
    "ALERT_ACCESS_DENIED": _KEY_REFUSED,
    "ALERT_PROTOCOL_VERSION": _NO_VERSION,
    "UNSUPPORTED_PROTOCOL": _NO_VERSION,
    "ALERT_HANDSHAKE_FAILURE": _NO_CIPHER_SUITE,
    "ALERT_INSUFFICIENT_SECURITY": _NO_CIPHER_SUITE,
    "DH_KEY_TOO_SMALL": _NO_CIPHER_SUITE,
}


class TlsError(RemoteError):
    """TLS with a server failed. `found` is the cause, `expected` names the option that matters."""

    def __init__(self, address: Address, found: str, expected: str) -> None:
        super().__init__(address, found, expected)
        self.address, self.found, self.expected = address, found, expected

    def _text(self) -> str:
        return f"{self.address}: {self.found}. {self.expected}"


def tls_failure(
    error: ssl.SSLError, address: Address, settings: TlsSettings, peer: Peer = BROKER
) -> TlsError | None:
    """Return the error with the cause. None for a failure that may pass, or an unknown one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _BY_VERIFY_CODE.get(error.verify_code, _REFUSED)
        return _tls_error(address, settings, peer, known, error.verify_message.rstrip("."))
    reason = error.reason or ""
    meaning = next((_BY_REASON[part] for part in _BY_REASON if part in reason), None)
    if meaning is None:
        return None
    if meaning is _KEY_REFUSED and not settings.has_key:
        meaning = _KEY_WANTED
    if meaning is _NO_CIPHER_SUITE and not settings.has_key:
        # In TLS 1.2 a server may send this alert because it misses a client certificate.
        meaning = (f"{meaning[0]}, or {_KEY_WANTED[0]}", f"{meaning[1]}. {_KEY_WANTED[1]}")
    return _tls_error(address, settings, peer, meaning, reason)


def speaks_no_tls(address: Address) -> TlsError:
    """Return the error for a broker that closes connections with TLS, and answers without."""
    return TlsError(address, _NO_TLS[0], BROKER.no_tls)


def _tls_error(
    address: Address, settings: TlsSettings, peer: Peer, meaning: tuple[str, str], by: str
) -> TlsError:
    names = {"peer": peer.name, "no_tls": peer.no_tls, "prefix": settings.prefix}
    found, expected = (text.format(other_name=peer.other_name, **names) for text in meaning)
    return TlsError(address, f"{found} ({by})", expected)
