"""Certificates for tests: an authority and its certificates, as files in all common formats.

X.509: https://www.rfc-editor.org/rfc/rfc5280, PKCS #12: https://www.rfc-editor.org/rfc/rfc7292
"""

import ipaddress
import os
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spark_kafka_source.net.tls.certificates import TEST_AUTHORITY
from spark_kafka_source.secret import Secret
from spark_kafka_source.testing.errors import ToolError
from spark_kafka_source.testing.java import find_java
from spark_kafka_source.testing.private_file import write_private

LOCAL_HOSTS = ("localhost", "127.0.0.1")

_VALID_FOR = timedelta(days=7)
_EXPIRED_FOR = timedelta(days=1)
_KEYTOOL_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, in files that only their owner may read."""

    chain: Path
    """PEM: the certificate, then its authority's."""
    key: Path
    """PEM, PKCS #8, not encrypted."""
    encrypted_key: Path
    """The key, encrypted with the password. Java 17 cannot read it."""
    keystore: Path
    """PEM: the key, then the chain, as Kafka reads it with `ssl.keystore.type=PEM`."""
    encrypted_keystore: Path
    """The same file with the key encrypted with the password. Java 17 cannot read it."""
    pkcs12: Path
    """The key and the chain, encrypted with the password."""
    password: Secret


class CertificateAuthority:
    """An authority that issues certificates, signed by its own key. All files are in one directory.

    Keys are on the curve P-256, which is fast. `certificate` is the authority's own, in PEM.
    `truststore` is the same as PKCS #12 for Java, encrypted with `password`.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._own = _certificate_of_authority(self._key)
        self._issued = 0
        self.password = Secret(secrets.token_urlsafe(12))
        pem = self._own.public_bytes(Encoding.PEM)
        self.certificate = write_private(directory / "authority.pem", pem)
        trusted = pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(self._own, b"authority")], self._encryption
        )
        self.truststore = write_private(directory / "truststore.p12", trusted)

    def issue(
        self, name: str, *, hosts: Sequence[str] = LOCAL_HOSTS, expired: bool = False
    ) -> Certificate:
        """Issue a certificate to a server or a client with this common name.

        `hosts` are the names and IP addresses under which clients may find the server. An `expired`
        certificate was valid until yesterday.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        ends = datetime.now(UTC) + (-_EXPIRED_FOR if expired else _VALID_FOR)
        certificate = (
            _builder(name, self._own.subject, key.public_key(), ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_general_name(h) for h in hosts]), False)
            .add_extension(x509.ExtendedKeyUsage(_SERVER_AND_CLIENT), critical=False)
            .add_extension(_identifier_of(self._own), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return self._written(name, key, certificate)

    @property
    def _encryption(self) -> KeySerializationEncryption:
        return BestAvailableEncryption(self.password.reveal().encode())

    def _written(
        self, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
    ) -> Certificate:
        self._issued += 1
        folder = self._directory / f"certificate-{self._issued}"
        folder.mkdir(mode=0o700, exist_ok=True)
        chain = certificate.public_bytes(Encoding.PEM) + self.certificate.read_bytes()
        plain, encrypted = _pem(key, NoEncryption()), _pem(key, self._encryption)
        both = pkcs12.serialize_key_and_certificates(
            name.encode(), key, certificate, [self._own], self._encryption
        )
        return Certificate(
            chain=write_private(folder / "chain.pem", chain),
            key=write_private(folder / "key.pem", plain),
            encrypted_key=write_private(folder / "encrypted-key.pem", encrypted),
            keystore=write_private(folder / "keystore.pem", plain + chain),
            encrypted_keystore=write_private(folder / "encrypted-keystore.pem", encrypted + chain),
            pkcs12=write_private(folder / "keystore.p12", both),
            password=self.password,
        )


def to_jks(store: Path, password: Secret) -> Path:
    """Convert a PKCS #12 store to a Java key store beside it, with the same password.

    The JDK's `keytool` does it. Raises `JavaError` without a Java, and `ToolError` if `keytool`
    fails.
    """
    target = store.with_suffix(".jks")
    target.unlink(missing_ok=True)
    # The `keytool` beside `java`: with a JDK from JAVA_HOME the PATH may have none.
    keytool = str(Path(find_java()).resolve().with_name("keytool"))
    source = ("-srckeystore", str(store), "-srcstoretype", "PKCS12", "-srcstorepass:env", "PASS")
    made = ("-destkeystore", str(target), "-deststoretype", "JKS", "-deststorepass:env", "PASS")
    run = subprocess.run(
        [keytool, "-importkeystore", "-noprompt", *source, *made],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PASS": password.reveal()},
        timeout=_KEYTOOL_TIMEOUT_SECONDS,
    )
    if run.returncode:
        raise ToolError("keytool", f"ended with {run.returncode}", run.stderr + run.stdout)
    target.chmod(0o600)
    return target


_SERVER_AND_CLIENT = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


def _certificate_of_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    # Each name is different: two authorities with one name differ only in their signatures.
    name = f"{TEST_AUTHORITY} {secrets.token_hex(4)}"
    public_key = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public_key)
    return (
        _builder(name, _name(name), public_key, datetime.now(UTC) + _VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signs_certificates(), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


def _builder(
    name: str, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - 2 * _VALID_FOR)
        .not_valid_after(ends)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _identifier_of(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    found = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found.value)


def _signs_certificates() -> x509.KeyUsage:
    uses = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    rest = ("key_agreement", "crl_sign", "encipher_only", "decipher_only")
    return x509.KeyUsage(key_cert_sign=True, **dict.fromkeys((*uses, *rest), False))


def _pem(key: ec.EllipticCurvePrivateKey, encryption: KeySerializationEncryption) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
