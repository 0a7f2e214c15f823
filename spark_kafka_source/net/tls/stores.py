"""Certificates and keys: PEM in options or files, PKCS12 files (KIP-651), certificates in DER.

A store in Java's own JKS is refused; the error has the command that converts it.
"""

import base64
import re
import secrets
import ssl
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.pem import Block, older_scheme, pem_blocks
from spark_kafka_source.options.unknown import if_resembling
from spark_kafka_source.secret import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


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
        pem.append(_encrypted(store.key, one_time))
    return pem_blocks(b"".join(pem).decode()), one_time


def _encrypted(key: "PrivateKeyTypes", one_time: Secret) -> bytes:
    """Return the key in PEM. OpenSSL reads it only from a file, so it must be encrypted there."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(one_time.reveal().encode()),
    )


_INSTALL = f"{install_extra('tls')} on the driver and on every executor"
_CONVERT = "openssl pkcs8 -topk8 -v2 aes256 -provider legacy -provider default -in KEY -out NEW"
_READ_BY_CRYPTOGRAPHY = {"PBE-MD5-DES", "PBE-SHA1-RC4-128", "PBE-SHA1-RC2-40", "RC2-CBC"}
_MOST_BYTES = 16 * 1024 * 1024
# The first bytes of a file. PEM may have any text before its first block.
_SEQUENCE = rb"0(?:[\0-\x80]|\x81.|\x82..|\x83.{3}|\x84.{4})"
_BEGINNINGS = (
    (rb"\xfe\xed\xfe\xed", "JKS"),
    (rb"\xce\xce\xce\xce", "JCEKS"),
    (_SEQUENCE + rb"\x02\x01\x03", "PKCS12"),  # Its version comes first (RFC 7292, 4).
    (_SEQUENCE + rb"0", "DER"),
)
_BASE64 = "base64"
# Java also reads PKCS12 if the type is JKS, which is Kafka's default.
_TYPES = ("PEM", "PKCS12", "DER", "JKS", "JCEKS")
_PATH = r"[^\n]*[/\\][^\n]*|[^\n]+\.[A-Za-z0-9]{2,10}"
_TYPES_FOR = {"PEM": ("", "PEM"), "PKCS12": ("", "PKCS12", "JKS"), "DER": ("", "DER")}


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
        blocks = _blocks(option, settings.ssl_truststore_certificates.reveal())
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
        _blocks(chain_option, chain.reveal()),
        key_option,
        _blocks(key_option, key.reveal()),
        password=settings.ssl_key_password,
    )


def encrypted_anew(key: ClientKey) -> ClientKey:
    """Return a key that OpenSSL does not decrypt, as `cryptography` reads it, with a new password.

    Raises `ConfigurationError` for a wrong password, and by name for a scheme that is not read.
    """
    wrong = ConfigurationError(
        key.password_option,
        f"does not decrypt the key of '{key.key_option}'",
        "Give the key's own password",
    )
    scheme = older_scheme(key.key.reveal())
    if scheme is None:
        raise wrong
    remedy = f"convert the key by '{_CONVERT}'"
    try:
        pem, one_time = _read_by_cryptography(key)
        return replace(key, key=pem, password=one_time)
    except LibraryMissingError:
        if scheme in _READ_BY_CRYPTOGRAPHY:
            remedy = f"{_INSTALL}, or {remedy}"
    except ValueError:  # It does not say whether the password or the scheme is at fault.
        if scheme in _READ_BY_CRYPTOGRAPHY:
            raise wrong from None
    text = f"holds a key that is encrypted by {scheme}, which OpenSSL does not read"
    raise ConfigurationError(key.key_option, text, remedy[0].upper() + remedy[1:])


def _read_by_cryptography(key: ClientKey) -> tuple[Secret, Secret]:
    """Return the key and its new password. Raises as `pkcs12_blocks` does."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
    except ImportError:
        raise LibraryMissingError from None
    pem, one_time = key.key.reveal().encode(), Secret(secrets.token_hex(32))
    try:
        read = serialization.load_pem_private_key(pem, key.password.reveal().encode())
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    return Secret(_encrypted(read, one_time).decode()), one_time


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


def _blocks(option: str, text: str) -> list[Block]:
    """Return the blocks of a text. Raises `ConfigurationError` for PEM in another form."""
    blocks = pem_blocks(text)
    if any("\\" in block.text for block in blocks):
        found = "has a backslash and an 'n' in place of the ends of lines"
        raise ConfigurationError(option, found, "Give real ends of lines, or spaces")
    if not blocks and _kind(text.encode(errors="replace")) == _BASE64:
        raise _encoded(option)
    return blocks


def _encoded(option: str) -> ConfigurationError:
    found = "is in base64, as in a Kubernetes secret"
    return ConfigurationError(option, found, "Decode it once, as by 'base64 -d', into a file")


def _is_given(store: _Store) -> bool:
    if not store.location and store.password:
        text = f"has no effect without '{store.option}'"
        raise ConfigurationError(f"{store.name}.password", text, "Give both, or leave it out")
    if store.type.strip().upper() not in ("", *_TYPES):  # It may be a misplaced password.
        expected = "Give 'PEM', 'PKCS12' or 'DER', or leave it out"
        raise ConfigurationError(f"{store.name}.type", "found {}", expected, store.shown_type)
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
    if kind in ("PEM", "DER"):
        if store.password:
            text = f"a file in {kind} has no password; only a key in it has"
            prefix = store.name.rpartition(".")[0]
            expected = f"Leave it out; that of a key is '{prefix}.key.password'"
            raise ConfigurationError(f"{store.name}.password", text, expected)
        text = _pem_of_der(data) if kind == "DER" else data.decode("latin-1")
        return _blocks(store.option, text), Secret("")
    try:
        return pkcs12_blocks(data, store.password)
    except LibraryMissingError:
        expected = f"{_INSTALL}, or convert the store to PEM by 'openssl pkcs12'"
        text = "PKCS12 needs the library 'cryptography', which is not installed"
        raise ConfigurationError(store.option, text, expected) from None
    except ValueError as error:
        text, where = "does not open {}", store.shown_location
        expected = "Give its password; if it is right, the file is damaged"
        raise ConfigurationError(f"{store.name}.password", text, expected, where) from error


def _pem_of_der(data: bytes) -> str:
    """Return certificates in DER, one after the other, as PEM (X.690, 8.1.3 and 10.1)."""
    found, start = [], 0
    while start < len(data):
        size, head = int.from_bytes(data[start + 1 : start + 2]), 2
        if size >= 0x80:
            head += size - 0x80
            size = int.from_bytes(data[start + 2 : start + head])
        end = start + head + size
        found.append(ssl.DER_cert_to_PEM_cert(data[start:end]))
        start = end
    return "".join(found)


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
    for beginning, kind in _BEGINNINGS:
        if re.match(beginning, data, re.DOTALL):
            return kind
    if b"-----BEGIN " in data:
        return "PEM"
    with suppress(ValueError):
        return _BASE64 if data and _kind(base64.b64decode(data)) else None
    return None


def _check_kind(store: _Store, kind: str | None) -> None:
    if kind in ("JKS", "JCEKS"):
        command = (
            f"keytool -importkeystore -srckeystore {store.location} -srcstoretype {kind} "
            f"-destkeystore {Path(store.location).with_suffix('.p12')} -deststoretype PKCS12"
        )
        text, expected = f"{{}} is a {kind} store, which only Java reads", f"Convert it: {command}"
        raise ConfigurationError(store.option, text, expected, store.shown_location)
    if kind == _BASE64:
        raise _encoded(store.option)
    if kind is None:
        text = "{} is neither PEM nor PKCS12 nor a certificate in DER"
        expected = "Give a file in PEM or PKCS12"
        raise ConfigurationError(store.option, text, expected, store.shown_location)
    if store.type.strip().upper() not in _TYPES_FOR[kind]:
        text, expected = f"found {{}}, but {{}} is in {kind}", f"Give '{kind}', or leave it out"
        shown = store.shown_type, store.shown_location
        raise ConfigurationError(f"{store.name}.type", text, expected, *shown)
