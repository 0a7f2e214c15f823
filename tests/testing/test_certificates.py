"""Certificates for tests, checked by Python's own TLS, without a network."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from spark_kafka_source.secret import Secret
from spark_kafka_source.testing import ToolError
from spark_kafka_source.testing.certificates import Certificate, CertificateAuthority, to_jks


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(authority: CertificateAuthority) -> Certificate:
    return authority.issue("server")


def shake_hands(
    authority: CertificateAuthority,
    server: Certificate,
    host: str = "localhost",
    client: Certificate | None = None,
) -> dict[str, object]:
    """Do a TLS handshake in memory. Return the names in the client's certificate, if any."""
    ours = ssl.create_default_context(cafile=str(authority.certificate))
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    # Later Python versions require everything in RFC 5280.
    ours.verify_flags |= ssl.VERIFY_X509_STRICT
    theirs.load_cert_chain(server.chain, server.key)
    if client:
        ours.load_cert_chain(client.keystore)
        theirs.verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        ours.wrap_bio(to_client, to_server, server_hostname=host),
        theirs.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = True
    while waiting:
        waiting = False
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                waiting = True
    return dict(ends[1].getpeercert() or {})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_server_is_trusted_at_its_hosts(
    authority: CertificateAuthority, server: Certificate, host: str
) -> None:
    assert shake_hands(authority, server, host) == {}


def test_a_client_is_known_by_its_name(
    authority: CertificateAuthority, server: Certificate
) -> None:
    shown = shake_hands(authority, server, client=authority.issue("alice"))
    assert shown["subject"] == ((("commonName", "alice"),),)


def test_what_should_be_refused_is_for_that_reason(
    authority: CertificateAuthority, server: Certificate, tmp_path: Path
) -> None:
    for certificate, reason in [
        (authority.issue("server", expired=True), "certificate has expired"),
        (authority.issue("server", hosts=["elsewhere.example"]), "Hostname mismatch"),
        (CertificateAuthority(tmp_path / "other").issue("server"), "self-signed certificate in"),
    ]:
        with pytest.raises(ssl.SSLCertVerificationError, match=reason):
            shake_hands(authority, certificate)


def test_files_are_their_owners_alone(authority: CertificateAuthority, server: Certificate) -> None:
    files = [path for path in authority.certificate.parent.rglob("*") if path.is_file()]
    assert server.key in files
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_encrypted_keys_open_with_the_password_alone(server: Certificate) -> None:
    for path in (server.encrypted_key, server.encrypted_keystore):
        assert b"ENCRYPTED PRIVATE KEY" in path.read_bytes()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(server.chain, path, server.password.reveal())
        with pytest.raises(ssl.SSLError):
            context.load_cert_chain(server.chain, path, "wrong")


def test_pkcs12_has_the_key_and_the_whole_chain(server: Certificate) -> None:
    password = server.password.reveal().encode()
    key, certificate, more = pkcs12.load_key_and_certificates(server.pkcs12.read_bytes(), password)
    assert key is not None
    assert certificate is not None
    assert certificate.public_key() == key.public_key()
    assert [each.subject for each in more] == [certificate.issuer]


def test_no_repr_shows_the_password(authority: CertificateAuthority, server: Certificate) -> None:
    assert authority.password.reveal() not in repr(server) + repr(authority)


@pytest.mark.java
def test_keytool_makes_a_java_key_store(authority: CertificateAuthority) -> None:
    certificate = authority.issue("alice")
    for store in (certificate.pkcs12, authority.truststore):
        jks = to_jks(store, authority.password)
        assert jks.read_bytes().startswith(b"\xfe\xed\xfe\xed")
        assert jks.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ToolError, match="password was incorrect") as failure:
        to_jks(certificate.pkcs12, Secret("canary"))
    assert "canary" not in str(failure.value)
