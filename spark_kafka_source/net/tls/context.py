"""TLS towards a broker: a context made from settings, and a connected socket under TLS.

Only TLS 1.2 and 1.3. Without a truststore the system's certificate authorities are trusted.
"""

import os
import re
import socket
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.stores import (
    ClientKey,
    client_key,
    encrypted_anew,
    trusted_certificates,
)
from spark_kafka_source.options.unknown import if_resembling
from spark_kafka_source.spelling import as_written

logger = logger_of(__name__)

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_BROKEN_VERSIONS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_NEWEST_BY_PROTOCOL = {"TLS": "TLSv1.3", **{name: name for name in _VERSIONS}}
_CONTEXTS_KEPT = 8
_MISMATCH = "KEY_VALUES_MISMATCH"


def tls_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context for these settings.

    Each process makes it once, and again if a store changes. Raises `ConfigurationError`, which
    names the option, for settings that cannot be used.
    """
    stores = (settings.ssl_truststore_location, settings.ssl_keystore_location)
    return _context(settings, *map(_state_of_file, stores))


def start_tls(connected: socket.socket, settings: TlsSettings, host: str) -> ssl.SSLSocket:
    """Return the socket under TLS, before its handshake. Do not use `link` any more.

    Raises `OSError`.
    """
    try:
        # A dot at the end is for the resolver. Names in certificates have none.
        name = host.rstrip(".")
        context = tls_context(settings)
        return context.wrap_socket(connected, server_hostname=name, do_handshake_on_connect=False)
    except ValueError as error:
        raise OSError(f"{host!r} is not a name that a certificate could have: {error}") from error


def _state_of_file(location: str) -> tuple[int, int] | None:
    try:
        state = Path(location).stat() if location else None
    except (OSError, ValueError):
        return None  # The error comes when the file is read.
    return (state.st_mtime_ns, state.st_size) if state else None


@lru_cache(_CONTEXTS_KEPT)
def _context(settings: TlsSettings, *_states: tuple[int, int] | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.check_hostname = _checks_host_name(settings)
    _limit_versions(context, settings)
    _limit_cipher_suites(context, settings)
    _trust(context, settings)
    key = client_key(settings)
    if key is not None:
        _load_key(context, key)
    return context


def _checks_host_name(settings: TlsSettings) -> bool:
    option = settings.named("ssl.endpoint.identification.algorithm")
    algorithm = settings.ssl_endpoint_identification_algorithm.strip().lower()
    if algorithm not in ("https", ""):
        expected = "Give 'https', or nothing at all, which is dangerous"
        raise ConfigurationError(option, "found {}", expected, if_resembling(algorithm, ["https"]))
    if not algorithm:
        logger.warning(
            "Option %s is empty: any server with a certificate of a trusted authority can pass "
            "for a broker",
            as_written(f"'{option}'"),
        )
    return bool(algorithm)


def _limit_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    newest = settings.ssl_protocol.strip()
    if newest not in _NEWEST_BY_PROTOCOL:
        expected = f"Give one of {', '.join(_NEWEST_BY_PROTOCOL)}"
        found = if_resembling(newest, _NEWEST_BY_PROTOCOL)
        raise ConfigurationError(settings.named("ssl.protocol"), "found {}", expected, found)
    option = settings.named("ssl.enabled.protocols")
    named = [name.strip() for name in settings.ssl_enabled_protocols.split(",") if name.strip()]
    for name in named:
        if name not in (*_VERSIONS, *_BROKEN_VERSIONS):
            expected = f"Give {' or '.join(_VERSIONS)}, or both with a comma between"
            raise ConfigurationError(option, "found {}", expected, if_resembling(name, _VERSIONS))
    limit = _VERSIONS[_NEWEST_BY_PROTOCOL[newest]]
    enabled = [_VERSIONS[name] for name in named if name in _VERSIONS and _VERSIONS[name] <= limit]
    if not enabled:
        text = f"none of {{}} is left, with '{settings.named('ssl.protocol')}' {newest}"
        expected = f"Give {' or '.join(_VERSIONS)}, or both with a comma between"
        raise ConfigurationError(option, text, expected, ", ".join(named))
    context.minimum_version, context.maximum_version = min(enabled), max(enabled)


def _limit_cipher_suites(context: ssl.SSLContext, settings: TlsSettings) -> None:
    named = [name.strip() for name in settings.ssl_cipher_suites.split(",") if name.strip()]
    if not named:
        return
    option = settings.named("ssl.cipher.suites")
    known = {suite["name"]: str(suite["protocol"]) for suite in context.get_ciphers()}
    for name in named:
        if _name_in_openssl(name) not in known:
            raise ConfigurationError(
                option,
                "{} is not available here, or is too weak",
                f"There are {', '.join(known)}, and Java's names of them",
                if_resembling(_name_in_openssl(name), known),
            )
    chosen = {_name_in_openssl(name) for name in named}
    of_1_3 = {name for name, version in known.items() if version == "TLSv1.3"}
    if chosen & of_1_3 and not chosen >= of_1_3:
        raise ConfigurationError(
            option,
            "names only some of TLS 1.3's suites, but Python cannot choose among these",
            f"Give all of {', '.join(sorted(of_1_3))}, or none of them",
        )
    _use_cipher_suites(context, settings, chosen - of_1_3, with_1_3=bool(chosen & of_1_3))


def _use_cipher_suites(
    context: ssl.SSLContext, settings: TlsSettings, of_1_2: set[str], *, with_1_3: bool
) -> None:
    """Enable cipher suites. A version without any of them is switched off."""
    if of_1_2:
        context.set_ciphers(":".join(sorted(of_1_2)))
    lowest = ssl.TLSVersion.TLSv1_2 if of_1_2 else ssl.TLSVersion.TLSv1_3
    highest = ssl.TLSVersion.TLSv1_3 if with_1_3 else ssl.TLSVersion.TLSv1_2
    lowest = max(lowest, context.minimum_version)
    highest = min(highest, context.maximum_version)
    if lowest > highest:
        text = f"has no suite for the versions in '{settings.named('ssl.enabled.protocols')}'"
        option = settings.named("ssl.cipher.suites")
        raise ConfigurationError(option, text, "Give some, or leave it out")
    # In this order the minimum is never above the maximum.
    context.maximum_version = highest
    context.minimum_version = lowest


def _name_in_openssl(name: str) -> str:
    """Return OpenSSL's name: `ECDHE-RSA-AES128-GCM-SHA256`.

    Java's is `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
    """
    if "_WITH_" not in name:
        return name
    text = name.removeprefix("TLS_").replace("_WITH_", "_").replace("_CBC_", "_")
    text = re.sub(r"AES_(128|256)", r"AES\1", text)
    return text.replace("POLY1305_SHA256", "POLY1305").replace("_", "-")


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    trusted = trusted_certificates(settings)
    if trusted is None:
        context.load_default_certs()
        return
    # As in Java: a certificate in the truststore is trusted, whether it is a root or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _load_certificates(context, trusted.option, trusted.certificates)


def _load_certificates(context: ssl.SSLContext, option: str, certificates: str) -> None:
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError, TypeError) as error:
        text = "holds a certificate that cannot be read"
        raise ConfigurationError(option, text, "Give X.509 certificates in PEM") from error


def _load_key(context: ssl.SSLContext, key: ClientKey) -> None:
    # Only a check of the certificates: an error for chain and key does not tell which of the two is
    # wrong.
    _load_certificates(
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), key.certificate_option, key.certificates
    )
    try:
        _load_chain(context, key)
    except (ssl.SSLError, ValueError) as error:
        if key.is_encrypted and getattr(error, "reason", None) != _MISMATCH:
            _load_key(context, encrypted_anew(key))
        else:
            raise _key_refused(key, getattr(error, "reason", None)) from error


def _load_chain(context: ssl.SSLContext, key: ClientKey) -> None:
    # Without a function for the password, OpenSSL would ask on the terminal.
    password = key.password.reveal
    descriptor, path = tempfile.mkstemp(suffix=".pem")  # Only this user can read it.
    try:
        os.close(descriptor)
        Path(path).write_text(key.certificates + key.key.reveal(), "utf-8", errors="replace")
        context.load_cert_chain(path, password=password)
    finally:
        Path(path).unlink()


def _key_refused(key: ClientKey, reason: str | None) -> ConfigurationError:
    if reason == _MISMATCH:
        expected = (
            f"Give the key that belongs to the first certificate of '{key.certificate_option}'"
        )
        return ConfigurationError(
            key.key_option, "the key and the certificate do not match", expected
        )
    return ConfigurationError(key.key_option, "holds a key that cannot be read", "Give it in PKCS8")
