"""Certificates and keys: PEM in options, PKCS12 in files."""

import tempfile
import warnings
from pathlib import Path

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import TlsSettings
from spark_kafka_source.net.tls import context
from spark_kafka_source.net.tls.stores import client_key
from spark_kafka_source.secret import Secret
from tools.certificates import authority

PASSWORD = "canary-of-the-key"
_TRUSTED = Secret(authority().certificate_pem)


def pem(data: bytes) -> None:
    """Read the text as trusted certificates, and as our own chain and key."""
    text = Secret(data.decode("latin-1"))
    _refusing(TlsSettings(ssl_truststore_certificates=text))
    _refusing(
        TlsSettings(
            ssl_keystore_certificate_chain=text,
            ssl_keystore_key=text,
            ssl_truststore_certificates=_TRUSTED,
        )
    )


def _refusing(settings: TlsSettings) -> None:
    context._context.cache_clear()
    try:
        context.tls_context(settings)
    except ConfigurationError as error:
        assert error.option.startswith("kafka.ssl.")


def pkcs12(data: bytes) -> None:
    """Read a keystore. `cryptography` warns of BER, but reads it."""
    with tempfile.NamedTemporaryFile() as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PKCS#12 bundle could not be parsed as DER")
        Path(file.name).write_bytes(data)
        try:
            client_key(
                TlsSettings(ssl_keystore_location=file.name, ssl_keystore_password=Secret(PASSWORD))
            )
        except ConfigurationError as error:
            assert error.option.startswith("kafka.ssl.")
            assert PASSWORD not in str(error)


def pem_seeds() -> list[bytes]:
    """Return a certificate with its key in two forms, with and without line breaks."""
    certified = authority()
    text = certified.certificate_pem + certified.key_pem()
    old = certified.certificate_pem + certified.old_key_pem(PASSWORD)
    return [each.encode() for each in (text, old, text.replace("\n", " "))]


def pkcs12_seeds() -> list[bytes]:
    """Return stores with and without a password, and one from Java."""
    certified = authority()
    with_password = certified.pkcs12(PASSWORD, authority=authority())
    return [with_password, certified.pkcs12(""), bytes.fromhex("feedfeed0000000200000001")]
