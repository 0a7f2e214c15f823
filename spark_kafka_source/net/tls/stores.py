"""Certificates and keys: PEM in options or files, and PKCS12 files (KIP-651).

A store in Java's own JKS is refused; the error has the command that converts it.
"""

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.pem import Block, pem_blocks
from spark_kafka_source.options.unknown import if_resembling
from spark_kafka_source.secret import Secret


class LibraryMissingError(Exception):
    """`cryptography` is not installed."""


def pkcs12_blocks(data: bytes, password: Secret) -> tuple[list[Block], Secret]:
    """Return the certificates (the key's first), the key, and a new password for the key.

    Raises `ValueError` for a wrong password or data that is no such store, and
    `LibraryMissingError`.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError:
        raise LibraryMissingError from None
    try:
        store = pkcs12.load_pkcs12(data, password.reveal().encode() if password else None)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    own = [store.cert] if store.cert else []
    pem = [
        certificate.certificate.public_bytes(serialization.Encoding.PEM)
        for certificate in (*own, *store.additional_certs)
    ]
    one_time = Secret(secrets.token_hex(32))
    if store.key is not None:
        # OpenSSL reads a key only from a file, so it must be encrypted there.
        key = store.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(one_time.reveal().encode()),
        )
        pem.append(key)
    return pem_blocks(b"".join(pem).decode()), one_time


_MOST_BYTES = 16 * 1024 * 1024
# The first bytes of a file. PEM may have any text before its first block.
_BEGINNINGS = ((b"\xfe\xed\xfe\xed", "JKS"), (b"\xce\xce\xce\xce", "JCEKS"), (b"\x30", "PKCS12"))
# Java also reads PKCS12 if the type is JKS, which is Kafka's default.
_TYPES = ("PEM", "PKCS12", "JKS", "JCEKS")
_PATH = r"[^\n]*[/\\][^\n]*|[^\n]+\.[A-Za-z0-9]{2,10}"
_TYPES_FOR = {"PEM": ("", "PEM"), "PKCS12": ("", "PKCS12", "JKS")}


@dataclass(frozen=True, slots=True)
class TrustedCertificates:
    """The certificates that vouch for brokers, in PEM, and the option that gave them."""

    option: str
    certificates: str


@dataclass(frozen=True, slots=True)
class ClientKey:
    """The client's certificates and key, in PEM, with the options that gave them."""

    certificate_option: str
    key_option: str
    certificates: str
    key: Secret
    is_encrypted: bool
    password: Secret
    password_option: str


@dataclass(frozen=True, slots=True)
class _Store:
    """A file and its options. The names of the options begin with `name`."""

    name: str
    location: str
    type: str
    password: Secret

    @property
    def option(self) -> str:
        return f"{self.name}.location"

    @property
    def shown_location(self) -> str | Secret:
        """The location if it resembles a path, otherwise hidden: it may be a key or a password."""
        return self.location if re.fullmatch(_PATH, self.location) else Secret(self.location)

    @property
    def shown_type(self) -> str | Secret:
        return if_resembling(self.type, _TYPES)


def trusted_certificates(settings: TlsSettings) -> TrustedCertificates | None:
    """Return the certificates of the truststore or of the PEM option. None if neither is given.

    Raises `ConfigurationError`, which names the option, for certificates that cannot be read.
    """
    store = _Store(
        settings.named("ssl.truststore"),
        settings.ssl_truststore_location,
        settings.ssl_truststore_type,
        settings.ssl_truststore_password,
    )
    option = f"{store.name}.certificates"
    if settings.ssl_truststore_certificates:
        _check_inline(store, option)
        blocks = pem_blocks(settings.ssl_truststore_certificates.reveal())
    elif _is_given(store):
        option, (blocks, _) = store.option, _read_store(store)
    else:
        return None
    return TrustedCertificates(option, _certificates(option, blocks))


def client_key(settings: TlsSettings) -> ClientKey | None:
    """Return the key of the keystore or of the PEM options. None if neither is given.

    Raises `ConfigurationError`, which names the option, for a key that cannot be read.
    """
    store = _Store(
        settings.named("ssl.keystore"),
        settings.ssl_keystore_location,
        settings.ssl_keystore_type,
        settings.ssl_keystore_password,
    )
    chain, key = settings.ssl_keystore_certificate_chain, settings.ssl_keystore_key
    if not chain and not key:
        return _client_key_of_file(store, settings) if _is_given(store) else None
    chain_option, key_option = f"{store.name}.certificate.chain", f"{store.name}.key"
    for secret, option in ((chain, chain_option), (key, key_option)):
        if not secret:
            text = "is missing, but its other half is given"
            raise ConfigurationError(
                option, text, f"Give both, '{chain_option}' and '{key_option}'"
            )
    _check_inline(store, chain_option)
    return _client_key(
        settings,
        chain_option,
        pem_blocks(chain.reveal()),
        key_option,
        pem_blocks(key.reveal()),
        password=settings.ssl_key_password,
    )


def _client_key_of_file(store: _Store, settings: TlsSettings) -> ClientKey:
    blocks, password = _read_store(store)
    password = password or settings.ssl_key_password
    return _client_key(settings, store.option, blocks, store.option, blocks, password=password)


def _client_key(
    settings: TlsSettings,
    chain_option: str,
    chain: list[Block],
    key_option: str,
    keys: list[Block],
    *,
    password: Secret,
) -> ClientKey:
    certificates = _certificates(chain_option, chain)
    password_option = settings.named("ssl.key.password")
    key = next((block for block in keys if block.is_key), None)
    if key is None:
        raise ConfigurationError(key_option, "holds no private key", "Give one, in PEM or PKCS12")
    if key.is_encrypted and not password:
        expected = "Give the password that decrypts the key"
        raise ConfigurationError(password_option, "is missing", expected)
    text = Secret(key.text)
    return ClientKey(
        chain_option, key_option, certificates, text, key.is_encrypted, password, password_option
    )


def _certificates(option: str, blocks: list[Block]) -> str:
    certificates = "".join(block.text for block in blocks if block.is_certificate)
    if not certificates:
        raise ConfigurationError(option, "holds no certificate", "Give some, in PEM or PKCS12")
    return certificates


def _is_given(store: _Store) -> bool:
    if not store.location and store.password:
        text = f"has no effect without '{store.option}'"
        raise ConfigurationError(f"{store.name}.password", text, "Give both, or leave it out")
    return bool(store.location)


def _check_inline(store: _Store, option: str) -> None:
    if store.location:
        text = f"is given as well as '{option}'"
        raise ConfigurationError(store.option, text, "Give one of them")
    if store.type.strip().upper() not in _TYPES_FOR["PEM"]:
        text = f"found {{}}, with '{option}' given"
        expected = "Give 'PEM', or leave it out"
        raise ConfigurationError(f"{store.name}.type", text, expected, store.shown_type)


def _read_store(store: _Store) -> tuple[list[Block], Secret]:
    """Return the blocks in the file, and the new password of its key, or an empty one for PEM."""
    data = _read_file(store)
    kind = _kind(data)
    _check_kind(store, kind)
    if kind == "PEM":
        if store.password:
            text = "a file in PEM has no password; only a key in it has"
            prefix = store.name.rpartition(".")[0]
            expected = f"Leave it out; that of a key is '{prefix}.key.password'"
            raise ConfigurationError(f"{store.name}.password", text, expected)
        return pem_blocks(data.decode("latin-1")), Secret("")
    try:
        return pkcs12_blocks(data, store.password)
    except LibraryMissingError:
        expected = (
            f"{install_extra('tls')} on the driver and on every executor, or convert the store to "
            "PEM by 'openssl pkcs12'"
        )
        text = "PKCS12 needs the library 'cryptography', which is not installed"
        raise ConfigurationError(store.option, text, expected) from None
    except ValueError as error:
        text, where = "does not open {}", store.shown_location
        expected = "Give its password; if it is right, the file is damaged"
        raise ConfigurationError(f"{store.name}.password", text, expected, where) from error


def _read_file(store: _Store) -> bytes:
    try:
        with Path(store.location).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        text, where = f"{{}} cannot be read: {reason}", store.shown_location
        expected = "Give a file that the driver and every executor can read"
        # The error's own text has the location in full.
        raise ConfigurationError(store.option, text, expected, where) from None
    if len(data) > _MOST_BYTES:
        text, expected = f"{{}} has more than {_MOST_BYTES} bytes", "Give a file in PEM or PKCS12"
        raise ConfigurationError(store.option, text, expected, store.shown_location)
    return data


def _kind(data: bytes) -> str | None:
    kinds = (kind for beginning, kind in _BEGINNINGS if data.startswith(beginning))
    return next(kinds, "PEM" if b"-----BEGIN " in data else None)


def _check_kind(store: _Store, kind: str | None) -> None:
    if kind in ("JKS", "JCEKS"):
        command = (
            f"keytool -importkeystore -srckeystore {store.location} -srcstoretype {kind} "
            f"-destkeystore {Path(store.location).with_suffix('.p12')} -deststoretype PKCS12"
        )
        text, expected = f"{{}} is a {kind} store, which only Java reads", f"Convert it: {command}"
        raise ConfigurationError(store.option, text, expected, store.shown_location)
    if kind is None:
        text, expected = "{} is neither PEM nor PKCS12", "Give a file in PEM or PKCS12"
        raise ConfigurationError(store.option, text, expected, store.shown_location)
    if store.type.strip().upper() not in _TYPES_FOR[kind]:
        text, expected = f"found {{}}, but {{}} is in {kind}", f"Give '{kind}', or leave it out"
        shown = store.shown_type, store.shown_location
        raise ConfigurationError(f"{store.name}.type", text, expected, *shown)
