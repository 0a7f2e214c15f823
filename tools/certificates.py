"""Certificates for tests: an authority, and certificates with and without its signature."""

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
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
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509.oid import NameOID

PASSWORD = "canary-of-the-key"
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Certified:
    """A key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str = "") -> str:
        encoded = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password))
        return encoded.decode()

    def old_key_pem(self, password: str) -> str:
        """Return the key in OpenSSL's format before PKCS8, with headers."""
        encryption = _encryption(password)
        form = PrivateFormat.TraditionalOpenSSL
        return self.key.private_bytes(Encoding.PEM, form, encryption).decode()

    def pkcs12(self, password: str, *, authority: "Certified | None" = None) -> bytes:
        chain = [authority.certificate] if authority else None
        return serialize_key_and_certificates(
            b"me", self.key, self.certificate, chain, _encryption(password)
        )

    def java_truststore(self, password: str) -> bytes:
        entry = PKCS12Certificate(self.certificate, b"ca")
        return serialize_java_truststore([entry], _encryption(password))

    def server_context(self, folder: Path, *, trusts: "Certified | None" = None) -> ssl.SSLContext:
        """Return a server's context. With `trusts`, clients need a certificate signed by it."""
        path = folder / "server.pem"
        path.write_text(self.certificate_pem + self.key_pem())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if trusts is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=trusts.certificate_pem)
        return context


def _encryption(password: str) -> KeySerializationEncryption:
    return BestAvailableEncryption(password.encode()) if password else NoEncryption()


def authority(name: str = "an authority of the tests") -> Certified:
    """Create a self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    return Certified(key, _certificate(name, key, name, key, is_authority=True, days_left=1))


def certified_by(
    issuer: Certified,
    *hosts: str,
    days_left: int = 1,
) -> Certified:
    """Create a certificate for hosts, or for a client (no hosts)."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = issuer.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    made = _certificate(
        "someone", key, str(name), issuer.key, *hosts, is_authority=False, days_left=days_left
    )
    return Certified(key, made)


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *hosts: str,
    is_authority: bool,
    days_left: int,
) -> x509.Certificate:
    end = datetime.datetime.now(datetime.UTC) + days_left * DAY
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 10 * DAY)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
