"""What a failure of TLS means, and which option it hangs on."""

import ssl

from spark_kafka_source.errors import RemoteError
from spark_kafka_source.net.address import Address
from spark_kafka_source.net.security import PROTOCOL_OPTION, TlsSettings

_TRUST = (
    "Give the authority of the brokers' certificates in 'kafka.ssl.truststore.location' or "
    "'kafka.ssl.truststore.certificates'"
)
_UNTRUSTED = "no authority that is trusted here vouches for the broker's certificate"
_OTHER_NAME = (
    "the broker's certificate is for another name",
    "Use a name that it has in 'kafka.bootstrap.servers' and the brokers' 'advertised.listeners'; "
    "'kafka.ssl.endpoint.identification.algorithm' says whether names are checked",
)
# https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/
_BY_VERIFY_CODE = {
    9: ("the broker's certificate is not valid yet", "Check the clocks, and renew it"),
    10: ("the broker's certificate has expired", "Renew it on the broker"),
    18: (_UNTRUSTED, _TRUST),
    19: (_UNTRUSTED, _TRUST),
    20: (_UNTRUSTED, _TRUST),
    21: (_UNTRUSTED, _TRUST),
    62: _OTHER_NAME,
    64: _OTHER_NAME,
}
_NO_TLS = (
    "the server does not speak TLS there",
    f"Use the port of its TLS listener, or another '{PROTOCOL_OPTION}'",
)
_KEY_WANTED = (
    "the broker demands a certificate of the client's",
    "Give it by 'kafka.ssl.keystore.location', or by 'kafka.ssl.keystore.certificate.chain' and "
    "'kafka.ssl.keystore.key'",
)
_KEY_REFUSED = (
    "the broker refuses the client's certificate",
    "Give one that it trusts by 'kafka.ssl.keystore.location', or by "
    "'kafka.ssl.keystore.certificate.chain' and 'kafka.ssl.keystore.key'",
)
_NO_VERSION = (
    "the broker speaks no version of TLS that is enabled here",
    "See 'kafka.ssl.enabled.protocols'; nothing older than TLSv1.2 is spoken",
)
_NO_CIPHER_SUITE = (
    "there is no cipher suite that both sides take",
    "See 'kafka.ssl.cipher.suites', and those of the broker",
)
# Parts of OpenSSL's reasons, which change their beginnings between versions.
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
    """TLS with a broker cannot be: `found` says why, and `expected` which option it hangs on."""

    def __init__(self, address: Address, found: str, expected: str) -> None:
        super().__init__(address, found, expected)
        self.address, self.found, self.expected = address, found, expected

    def _text(self) -> str:
        return f"{self.address}: {self.found}. {self.expected}"


def tls_failure(error: ssl.SSLError, address: Address, settings: TlsSettings) -> TlsError | None:
    """The error that says what the matter is; None for what may pass, or that nobody foresaw."""
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _BY_VERIFY_CODE.get(
            error.verify_code, ("the broker's certificate is refused", _TRUST)
        )
        return TlsError(address, f"{known[0]} ({error.verify_message.rstrip('.')})", known[1])
    reason = error.reason or ""
    meaning = next((_BY_REASON[part] for part in _BY_REASON if part in reason), None)
    if meaning is None:
        return None
    if meaning is _KEY_REFUSED and not settings.has_key:
        meaning = _KEY_WANTED
    if meaning is _NO_CIPHER_SUITE and not settings.has_key:
        # A broker may say the same in TLS 1.2 for want of a certificate.
        meaning = (f"{meaning[0]}, or {_KEY_WANTED[0]}", f"{meaning[1]}. {_KEY_WANTED[1]}")
    return TlsError(address, f"{meaning[0]} ({reason})", meaning[1])


def speaks_no_tls(address: Address) -> TlsError:
    """The error for a broker that hangs up on TLS, and answers without."""
    return TlsError(address, *_NO_TLS)
