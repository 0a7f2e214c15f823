"""Certificates and keys: PEM in options, PKCS12 in files."""

import tempfile
import warnings
from pathlib import Path

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import TlsSettings, tls
from spark_kafka_source.net.stores import client_key
from spark_kafka_source.secret import Secret
from tests.net.certificates import authority

PASSWORD = "canary-of-the-key"
_TRUSTED = Secret(authority().certificate_pem)


def pem(data: bytes) -> None:
    """Trusted certificates, and the same text as our own chain and key."""
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
    tls._context.cache_clear()
    try:
        tls.tls_context(settings)
    except ConfigurationError as error:
        assert error.option.startswith("kafka.ssl.")


def pkcs12(data: bytes) -> None:
    """A keystore. `cryptography` warns of one in BER, which it reads all the same."""
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
    """A certificate with its key, in two forms, in lines and without."""
    certified = authority()
    text = certified.certificate_pem + certified.key_pem()
    old = certified.certificate_pem + certified.old_key_pem(PASSWORD)
    return [each.encode() for each in (text, old, text.replace("\n", " "))]


def pkcs12_seeds() -> list[bytes]:
    """Stores with a password and without, and one of Java's."""
    certified = authority()
    with_password = certified.pkcs12(PASSWORD, authority=authority())
    return [with_password, certified.pkcs12(""), bytes.fromhex("feedfeed0000000200000001")]
