"""Errors of OpenSSL in our words, with the names of our options."""

import ssl

import pytest

from spark_kafka_source.net import Address, TlsSettings
from spark_kafka_source.net.tls.failures import tls_failure

BROKER = Address("broker.example.org", 9093)
WITH_KEY = TlsSettings(ssl_keystore_location="me.pem")
WITHOUT = TlsSettings()


def said(reason: str | None, settings: TlsSettings = WITHOUT) -> str | None:
    error = ssl.SSLError(1, "what it says")
    error.reason = reason  # type: ignore[assignment]  # OpenSSL may give none
    found = tls_failure(error, BROKER, settings)
    return str(found) if found else None


@pytest.mark.parametrize(
    ("reason", "settings", "meaning"),
    [
        # Java's TLS answers this if there is no certificate at all.
        ("SSLV3_ALERT_BAD_CERTIFICATE", WITHOUT, "demands a client certificate"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", WITH_KEY, "refuses the client's certificate"),
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", WITH_KEY, "refuses the client's certificate"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", WITH_KEY, "refuses the client's certificate"),
        ("TLSV1_ALERT_UNKNOWN_CA", WITH_KEY, "refuses the client's certificate"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", WITH_KEY, "demands a client certificate"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", WITH_KEY, "no cipher suite that both sides take (SSL"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", WITHOUT, "or the broker demands a client certificate"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", WITHOUT, "no version of TLS that is enabled here"),
        ("WRONG_VERSION_NUMBER", WITHOUT, "does not speak TLS"),
    ],
)
def test_a_failure_that_stays_is_named(reason: str, settings: TlsSettings, meaning: str) -> None:
    text = said(reason, settings) or ""
    assert text.startswith("broker.example.org:9093: ")
    assert meaning in text
    assert reason in text
    assert "'kafka." in text


@pytest.mark.parametrize("reason", ["TLSV1_ALERT_INTERNAL_ERROR", "DECRYPTION_FAILED", "", None])
def test_what_may_pass_is_no_failure_of_settings(reason: str | None) -> None:
    assert said(reason) is None
