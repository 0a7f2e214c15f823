"""Certificates and keys in options and files, and all their possible errors."""

import base64
import os
import re
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import SecuritySettings, TlsSettings, tls_context
from spark_kafka_source.net.tls import context
from spark_kafka_source.net.tls.pem import pem_blocks
from spark_kafka_source.options.declaration import Settings
from tools.certificates import PASSWORD, Certified

JKS = bytes.fromhex("feedfeed00000002")


@pytest.fixture(autouse=True)
def _every_context_is_a_new_one() -> None:
    context._context.cache_clear()


def tls_settings(**values: str) -> TlsSettings:
    """Return settings from `kafka.ssl.*` options, written with underscores."""
    options = {f"kafka.ssl.{name.replace('_', '.')}": value for name, value in values.items()}
    protocol = {"kafka.security.protocol": "SSL"}
    found = SecuritySettings.from_settings(Settings(protocol | options)).tls
    assert found is not None
    return found


def refusal(**values: str) -> ConfigurationError:
    """Return the error of these options. Neither the error nor its causes have a secret."""
    with pytest.raises(ConfigurationError) as caught:
        tls_context(tls_settings(**values))
    error: BaseException | None = caught.value
    while error is not None:
        assert PASSWORD not in f"{error!r}{error}"
        error = error.__cause__ or error.__context__
    return caught.value


def written(folder: Path, content: str | bytes, name: str = "store") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def authorities(**values: str) -> int:
    return tls_context(tls_settings(**values)).cert_store_stats()["x509_ca"]


# -- truststores -----------------------------------------------------------------------------------


def test_trust_in_pem_inline_on_one_line_or_in_a_file(ca: Certified, tmp_path: Path) -> None:
    pem = ca.certificate_pem
    file = written(tmp_path, f"# d'un ami, où ça ?\n{pem}{pem}\n")
    assert authorities(truststore_certificates=pem) == 1
    assert authorities(truststore_certificates=pem.replace("\n", " "), truststore_type="pem") == 1
    assert authorities(truststore_location=file) == 1
    assert authorities(truststore_location=file, truststore_type="PEM") == 1


@pytest.mark.parametrize("type_name", ["", "PKCS12", "jks"])
def test_a_pkcs12_truststore_written_by_java_is_trusted(
    ca: Certified, tmp_path: Path, type_name: str
) -> None:
    """Java, too, reads PKCS12 when the type is JKS."""
    file = written(tmp_path, ca.java_truststore(PASSWORD))
    options = {"truststore_password": f" {PASSWORD}\n", "truststore_type": type_name}
    assert authorities(truststore_location=file, **options) == 1


def test_a_store_that_is_renewed_is_read_again(ca: Certified, tmp_path: Path) -> None:
    file = written(tmp_path, ca.certificate_pem)
    first = tls_context(tls_settings(truststore_location=file))
    assert tls_context(tls_settings(truststore_location=file)) is first
    os.utime(file, ns=(1, 1))
    assert tls_context(tls_settings(truststore_location=file)) is not first


@pytest.mark.parametrize(
    ("content", "option", "said"),
    [
        (None, "location", "cannot be read: No such file or directory"),
        (b"", "location", "neither PEM nor PKCS12"),
        (b"certificate", "location", "neither PEM nor PKCS12"),
        (JKS, "location", "keytool -importkeystore -srckeystore"),
        (b"-----BEGIN CERTIFICATE-----", "location", "holds no certificate"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "location",
            "holds a certificate that cannot be read",
        ),
        (
            "-----BEGIN CERTIFICATE-----\né\n-----END CERTIFICATE-----",
            "location",
            "holds a certificate that cannot be read",
        ),
        (b"0\x82\x01\x00", "location", "nor a certificate in DER"),
        (b"0\x82\x01\x00\x02\x01\x03", "password", "does not open"),
        (b"0\x06" * 4, "location", "holds a certificate that cannot be read"),
    ],
)
def test_a_truststore_of_no_use(
    tmp_path: Path, content: bytes | None, option: str, said: str
) -> None:
    file = str(tmp_path / "none") if content is None else written(tmp_path, content)
    found = refusal(truststore_location=file)
    assert found.option == f"kafka.ssl.truststore.{option}"
    assert said in str(found)


@pytest.mark.parametrize("location", ["\0", "/", "x" * 5000])
def test_a_location_that_is_no_file(location: str) -> None:
    assert "cannot be read" in str(refusal(truststore_location=location))


def test_a_wrong_password(ca: Certified, tmp_path: Path) -> None:
    file = written(tmp_path, ca.java_truststore("another"))
    for options in ({}, {"truststore_password": PASSWORD}):
        found = refusal(truststore_location=file, **options)
        assert found.option == "kafka.ssl.truststore.password"


def test_options_that_contradict_each_other(ca: Certified, tmp_path: Path) -> None:
    pem, file = ca.certificate_pem, written(tmp_path, ca.certificate_pem)
    store = written(tmp_path, ca.java_truststore(PASSWORD), "store.p12")
    for options, option in (
        ({"truststore_location": file, "truststore_certificates": pem}, "truststore.location"),
        ({"truststore_location": file, "truststore_type": "PKCS12"}, "truststore.type"),
        ({"truststore_location": file, "truststore_type": "BCFKS"}, "truststore.type"),
        ({"truststore_location": store, "truststore_type": "PEM"}, "truststore.type"),
        ({"truststore_certificates": pem, "truststore_type": "JKS"}, "truststore.type"),
        ({"truststore_location": file, "truststore_password": PASSWORD}, "truststore.password"),
        ({"truststore_password": PASSWORD}, "truststore.password"),
        ({"truststore_type": PASSWORD}, "truststore.type"),
        ({"keystore_type": PASSWORD}, "keystore.type"),
        ({"keystore_key": pem}, "keystore.certificate.chain"),
        ({"keystore_certificate_chain": pem}, "keystore.key"),
    ):
        assert refusal(**options).option == f"kafka.ssl.{option}"


def test_pkcs12_takes_a_library(
    ca: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, ca.java_truststore(PASSWORD))
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    said = str(refusal(truststore_location=file, truststore_password=PASSWORD))
    assert "Install this package with its extra 'tls' on the driver" in said


def test_a_truststore_in_der_is_read(ca: Certified, tmp_path: Path) -> None:
    file = written(tmp_path, ssl.PEM_cert_to_DER_cert(ca.certificate_pem))
    assert authorities(truststore_location=file) == 1
    assert authorities(truststore_location=file, truststore_type="DER") == 1


@pytest.mark.parametrize(
    ("after", "count"), [("me", 2), (b"\n", None), (b"0", None), ("cut", None), ("pem", None)]
)
def test_all_that_follows_a_certificate_in_der_is_read_or_refused(
    ca: Certified, me: Certified, tmp_path: Path, after: str | bytes, count: int | None
) -> None:
    first, second = (ssl.PEM_cert_to_DER_cert(each.certificate_pem) for each in (ca, me))
    known = {"me": second, "cut": second[:-1], "pem": me.certificate_pem.encode()}
    rest = known[after] if isinstance(after, str) else after
    file = {"truststore_location": written(tmp_path, first + rest)}
    if count is None:
        assert "holds a certificate that cannot be read" in str(refusal(**file))
    else:
        assert tls_context(tls_settings(**file)).cert_store_stats()["x509"] == count


@pytest.mark.parametrize("in_file", [True, False])
@pytest.mark.parametrize("prefix", ["kafka.", "schema.registry."])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda pem: pem.replace("\n", r"\n"), "a backslash and an 'n' in place of the ends"),
        (lambda pem: pem.replace("\n", r"\r\n"), "a backslash and an 'n' in place of the ends"),
        (lambda pem: base64.b64encode(pem.encode()).decode(), "in base64, as in a Kubernetes"),
        (lambda pem: base64.encodebytes(f"# our CA\n{pem}".encode()).decode(), "in base64, as in"),
    ],
)
def test_pem_in_another_form_is_refused_with_the_cure(
    ca: Certified,
    me: Certified,
    tmp_path: Path,
    *,
    changed: Callable[[str], str],
    said: str,
    prefix: str,
    in_file: bool,
) -> None:
    trust, chain, key = map(changed, (ca.certificate_pem, me.certificate_pem, me.key_pem()))
    given = [{"truststore.certificates": trust}]
    given += [{"keystore.certificate.chain": chain, "keystore.key": me.key_pem()}]
    given += [{"keystore.certificate.chain": me.certificate_pem, "keystore.key": key}]
    if in_file:
        given = [
            {f"{store}.location": written(tmp_path, text, store)}
            for store, text in (("truststore", trust), ("keystore", chain + key))
        ]
    for options in given:
        named = {f"{prefix}ssl.{name}": value for name, value in options.items()}
        with pytest.raises(ConfigurationError, match=said) as caught:
            tls_context(TlsSettings.from_settings(Settings(named), prefix))
        assert named[caught.value.option] not in (ca.certificate_pem, me.certificate_pem)


@pytest.mark.parametrize("form", ["PEM", "DER", "PKCS12", "JKS"])
def test_a_store_in_base64_is_refused_with_the_cure(
    ca: Certified, tmp_path: Path, form: str
) -> None:
    pem = ca.certificate_pem
    stores = {"PEM": pem.encode(), "DER": ssl.PEM_cert_to_DER_cert(pem), "JKS": JKS}
    data = stores.get(form) or ca.java_truststore(PASSWORD)
    text = base64.b64encode(data).decode()
    file = {"truststore_location": written(tmp_path, text)}
    for options in ({"truststore_certificates": text}, file, file | {"truststore_type": form}):
        assert "in base64, as in a Kubernetes secret. Decode it once" in str(refusal(**options))


# -- keystores -------------------------------------------------------------------------------------


def inline(me: Certified, key: str) -> dict[str, str]:
    return {"keystore_certificate_chain": me.certificate_pem, "keystore_key": key}


def test_a_key_in_all_its_forms(ca: Certified, me: Certified, tmp_path: Path) -> None:
    password = {"key_password": PASSWORD}
    tls_context(tls_settings(**inline(me, me.key_pem())))
    tls_context(tls_settings(**inline(me, me.key_pem().replace("\n", " "))))
    tls_context(tls_settings(**inline(me, me.key_pem(PASSWORD)), **password))
    tls_context(tls_settings(**inline(me, me.old_key_pem(PASSWORD)), **password))
    file = written(tmp_path, me.certificate_pem + ca.certificate_pem + me.key_pem(PASSWORD))
    tls_context(tls_settings(keystore_location=file, keystore_type="PEM", **password))
    store = written(tmp_path, me.pkcs12(PASSWORD, authority=ca), "store.p12")
    tls_context(tls_settings(keystore_location=store, keystore_password=PASSWORD))


@pytest.mark.parametrize("form", [Certified.key_pem, Certified.old_key_pem])
def test_the_password_of_a_key(me: Certified, form: object) -> None:
    assert callable(form)
    key = form(me, PASSWORD)
    for options, said in (
        ({}, "is missing"),
        ({"key_password": "wrong"}, "does not decrypt"),
        ({"key_password": "x" * 2000}, "does not decrypt"),
    ):
        found = refusal(**inline(me, key), **options)
        assert found.option == "kafka.ssl.key.password"
        assert said in str(found)


# One key by `openssl pkcs8 -topk8 -v1 SCHEME` or `-v2`, with `PASSWORD`; who reads it.
SCHEMES = {
    "PBE-SHA1-3DES": (
        "openssl",
        "MIGxMBwGCiqGSIb3DQEMAQMwDgQI536SJjTfSPICAggABIGQ72la/lm+5Y53wyFRVRbnrl8IBhoZ/Agc52+kNKWI"
        "wQ9haD4LIUvNJVIPYXg281Td7jhSyvSVEatYtqdRUU+zsSbUjibkswRhcUgrPEU9q6UuaIO5fgwBd62K7MHX48wZ"
        "xrE4vW4Z3rcVcZmPM/X2xX+YDGGKb7zNJc4Px9eaF6//oOL0aY9xT8OiXYvXuK3O",
    ),
    "PBE-MD5-DES": (
        "cryptography",
        "MIGwMBsGCSqGSIb3DQEFAzAOBAgfNFbBcPCk1gICCAAEgZCOJfni2Q97Z7PiGDEcd6mBs/MABQZBwG10nXeO2ZeE"
        "7/0Hv07wbcBBRCfsh/IN41DcBzs5ey7/KZB4yNU13aO7X0ZrmDnHQt0U2QO/pzdm+CBI5glCcAqld1/bjXxCJcC+"
        "ftOXIIEeSMczvd12xxmUgwgH2pAQuCHoytNC1GNMWf/l4a1R07uJcPYjRWHLxP4=",
    ),
    "PBE-SHA1-RC4-128": (
        "cryptography",
        "MIGrMBwGCiqGSIb3DQEMAQEwDgQIQW84s0QzazkCAggABIGK8iSncCtO6XNLvYxctY84o45uymmxloHjeli7TnX4"
        "M9YnpAM/JFSqRVYShhaXjp3/uV3qrxvayHeHV9egTP51aki9IiR6Ao3hiqSrNblDt4mJeo8nkOr2Hf48Xag5kDwG"
        "NzHvsLUKgJ7eE+STDXOuTDmRr3Bd57kY07P4Iyj2MsOJzI54y/Zr/9oB",
    ),
    "RC2-CBC": (
        "cryptography",
        "MIHrMFYGCSqGSIb3DQEFDTBJMCwGCSqGSIb3DQEFDDAfBAhIhmPb1fupbQICCAACARAwDAYIKoZIhvcNAgkFADAZ"
        "BggqhkiG9w0DAjANAgE6BAheIpUoRiTrqASBkOnJ0u/vk+t+4zIhiCwI/DdJ5OOlIWnTAyvO2+cDLf07FpANeznsF"
        "PGB0Lbm+4oQj+/u2oUlPxlcw6UBHmRxt7gdhRqQ5eYOpoHpcpVGO4YJQIFoERNbs6lW0AzgBNuFy2m88YHIvgFEk"
        "ZD2AQTvU+wed13NXUQrx3lDJZTS2e9gMNpPzs76HWr+MM0kCc0z2w==",
    ),
    "PBE-SHA1-RC2-64": (
        "nothing",
        "MIGwMBsGCSqGSIb3DQEFCzAOBAhZO1RNNqpzYAICCAAEgZAJdPglO+R6zFKy5xPVZKS905dzRFzYxbZQnJvN21nZ"
        "3heHHmVRkU8KNCaUdYRjOny832AMQmRBOemYEdfGnvcxvfeDeIZD76bmqQrtTSA53m2nNMHjizMUuH/YcfwWDq2s"
        "vT+qY3Yp/TnxIYWz0rq2a2kGvgt3svbnOcaZPfqJvVzEp8DZvgIMrcir1y9ytSE=",
    ),
    "PBE-SHA1-DES": (
        "nothing",
        "MIGwMBsGCSqGSIb3DQEFCjAOBAhUoD8PLFqX0QICCAAEgZBk6eDSS6k3tq+cxkDpZPRZRRMD3bLL9+h52+XHmf1V"
        "imuX3+2C8vFW8Im+bGOlk4SpXDzF95lqzUFl74CxkNWU6XacSxfQHLCLosDUpl3tLURgZcso1huvks1jmmiq1gMn"
        "/+RBozGQFnbmrrpcaSab5NXReq+9JociSELxS3SY44af5n73IO7bDPFElmPIJks=",
    ),
    "DES-CBC": (
        "nothing",
        "Proc-Type: 4,ENCRYPTED\nDEK-Info: DES-CBC,6FBB48F671740821\n\n"
        "tmR+bP+n75/tElALtE9kpfBaom9hYc5uQcDD3lEXXaAw97IEGgWs3kuhPdVtMcMe\n"
        "Gv9UxWga4p/fxMSRrrN3gkF7SwBpqolHthiwgp3NGadrn73Z/mxL8UW3V5k3JEQm\n"
        "PjSNHBGD2RZwWJMJxxw2303QMLnxMYhS1qqmIII5NvQ=",
    ),
}


LEGACY = ["openssl", "list", "-providers", "-provider", "legacy"]


def key_by(scheme: str) -> str:
    _, body = SCHEMES[scheme]
    label = "EC PRIVATE KEY" if ":" in body else "ENCRYPTED PRIVATE KEY"
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if SCHEMES[name][0] == "nothing"])
def test_the_command_in_the_error_converts_a_key(
    me: Certified, tmp_path: Path, scheme: str
) -> None:
    if not shutil.which("openssl") or subprocess.run(LEGACY, check=False).returncode:
        pytest.skip("There is no command openssl with the provider `legacy`")
    files = {"KEY": written(tmp_path, key_by(scheme)), "NEW": str(tmp_path / "new")}
    right = {"key_password": PASSWORD}
    told = re.search("'(openssl [^']*)'", str(refusal(**inline(me, key_by(scheme)), **right)))
    assert told
    command = [files.get(word, word) for word in told[1].split()]
    command += ["-passin", f"pass:{PASSWORD}", "-passout", f"pass:{PASSWORD}"]
    subprocess.run(command, check=True, timeout=60)
    assert "do not match" in str(refusal(**inline(me, Path(files["NEW"]).read_text()), **right))


@pytest.mark.parametrize("in_file", [True, False])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_older_scheme_is_read_or_named(
    me: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, in_file: bool
) -> None:
    reader, key = SCHEMES[scheme][0], key_by(scheme)
    options = inline(me, key)
    if in_file:
        options = {"keystore_location": written(tmp_path, me.certificate_pem + key)}
    right, wrong = ({"key_password": text} for text in (PASSWORD, "wrong"))
    named, wrong_password = f"is encrypted by {scheme}, which", "does not decrypt the key"
    # A key that is read is found to be of another certificate.
    known = "do not match" if reader != "nothing" else named
    assert known in str(refusal(**options, **right))
    assert (wrong_password if reader != "nothing" else named) in str(refusal(**options, **wrong))
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    monkeypatch.delattr("cryptography.hazmat.primitives.serialization")
    without = str(refusal(**options, **right))
    assert (known if reader == "openssl" else named) in without
    assert ("with its extra 'tls'" in without) == (reader == "cryptography")


def test_a_key_that_belongs_to_another_certificate(ca: Certified, me: Certified) -> None:
    found = refusal(**inline(me, ca.key_pem()))
    assert found.option == "kafka.ssl.keystore.key"
    assert "do not match" in str(found)


@pytest.mark.parametrize(
    ("certificate", "key", "option"),
    [
        ("", "A A A A", "key"),
        ("", "-----BEGIN PRIVATE KEY-----AAAA-----END PRIVATE KEY-----", "key"),
        ("-----BEGIN CERTIFICATE-----AAAA-----END CERTIFICATE-----", "", "certificate.chain"),
        ("AAAA", "", "certificate.chain"),
    ],
)
def test_a_key_or_certificate_that_is_none(
    me: Certified, certificate: str, key: str, option: str
) -> None:
    found = refusal(
        keystore_certificate_chain=certificate or me.certificate_pem,
        keystore_key=key or me.key_pem(),
    )
    assert found.option == f"kafka.ssl.keystore.{option}"


def test_a_keystore_without_a_key(ca: Certified, tmp_path: Path) -> None:
    file = written(tmp_path, ca.certificate_pem)
    found = refusal(keystore_location=file)
    assert (found.option, found.found) == ("kafka.ssl.keystore.location", "holds no private key")


def watched_files(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Return a list that gets the mode and the text of each file written from now on."""
    files = []
    write = Path.write_text

    def watched(path: Path, text: str, *arguments: str, **options: str) -> int:
        files.append((stat.S_IMODE(path.stat().st_mode), text))
        return write(path, text, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", watched)
    return files


@pytest.mark.parametrize("fails", [False, True])
def test_a_key_lies_in_a_file_for_this_user_alone_and_not_for_long(
    me: Certified, ca: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = watched_files(monkeypatch)
    if fails:
        refusal(**inline(me, ca.key_pem()))
    else:
        tls_context(tls_settings(**inline(me, me.key_pem())))
    assert [mode for mode, _ in files] == [0o600]
    assert not list(tmp_path.iterdir())


def test_a_key_out_of_pkcs12_lies_there_encrypted(
    me: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = written(tmp_path, me.pkcs12(PASSWORD))
    files = watched_files(monkeypatch)
    tls_context(tls_settings(keystore_location=store, keystore_password=PASSWORD))
    assert [block.label for block in pem_blocks(files[0][1]) if block.is_key] == [
        "ENCRYPTED PRIVATE KEY"
    ]


# -- versions and cipher suites --------------------------------------------------------------------

OF_1_3 = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"
OF_BOTH = f"{OF_1_3},TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("values", "lowest", "highest"),
    [
        ({}, "TLSv1_2", "TLSv1_3"),
        ({"enabled_protocols": "TLSv1.3"}, "TLSv1_3", "TLSv1_3"),
        ({"enabled_protocols": " TLSv1.2 , TLSv1.1,SSLv3"}, "TLSv1_2", "TLSv1_2"),
        ({"protocol": "TLSv1.2"}, "TLSv1_2", "TLSv1_2"),
        ({"protocol": "TLS"}, "TLSv1_2", "TLSv1_3"),
        ({"cipher_suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, "TLSv1_2", "TLSv1_2"),
        ({"cipher_suites": "ECDHE-RSA-CHACHA20-POLY1305"}, "TLSv1_2", "TLSv1_2"),
        ({"cipher_suites": OF_1_3}, "TLSv1_3", "TLSv1_3"),
        ({"cipher_suites": OF_BOTH}, "TLSv1_2", "TLSv1_3"),
        ({"cipher_suites": OF_BOTH, "enabled_protocols": "TLSv1.2"}, "TLSv1_2", "TLSv1_2"),
        ({"cipher_suites": OF_BOTH, "enabled_protocols": "TLSv1.3"}, "TLSv1_3", "TLSv1_3"),
    ],
)
def test_versions(values: dict[str, str], lowest: str, highest: str) -> None:
    context = tls_context(tls_settings(**values))
    assert (context.minimum_version.name, context.maximum_version.name) == (lowest, highest)


def test_cipher_suites_are_those_given_by_either_name() -> None:
    names = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, ECDHE-ECDSA-AES128-GCM-SHA256"
    context = tls_context(tls_settings(cipher_suites=names))
    of_1_2 = {each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"}
    assert of_1_2 == {"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("enabled_protocols", "TLSv1.1"),
        ("enabled_protocols", ""),
        ("enabled_protocols", "TLSv1.4"),
        ("protocol", "TLSv1.1"),
        ("protocol", ""),
        ("endpoint_identification_algorithm", "ldaps"),
        ("cipher_suites", "TLS_RSA_WITH_NULL_SHA256"),
        ("cipher_suites", "ALL:eNULL"),
        ("cipher_suites", "@SECLEVEL=0"),
        ("cipher_suites", "TLS_RSA_WITH_RC4_128_MD5"),
        ("cipher_suites", "TLS_AES_256_GCM_SHA384"),
    ],
)
def test_what_would_weaken_it_or_means_nothing_is_refused(option: str, value: str) -> None:
    assert refusal(**{option: value}).option == f"kafka.ssl.{option.replace('_', '.')}"


def test_versions_and_cipher_suites_that_contradict_each_other() -> None:
    values = {"enabled_protocols": "TLSv1.3", "cipher_suites": "ECDHE-RSA-AES128-GCM-SHA256"}
    assert refusal(**values).option == "kafka.ssl.cipher.suites"
    assert refusal(enabled_protocols="TLSv1.3", protocol="TLSv1.2").option.endswith("protocols")


# -- other errors ----------------------------------------------------------------------------------


@given(st.text(), st.sampled_from(sorted(TlsSettings.__dataclass_fields__)))
def test_any_text_makes_a_context_or_is_refused_by_name(text: str, field: str) -> None:
    try:
        tls_context(tls_settings(**{field.removeprefix("ssl_"): text}))
    except ConfigurationError as refused:
        assert refused.option.startswith("kafka.ssl.")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.sampled_from([b"", b"-----BEGIN ", b"0\x82", JKS]), data=st.binary(max_size=300))
def test_any_file_is_refused_by_name(tmp_path: Path, start: bytes, data: bytes) -> None:
    file = written(tmp_path, start + data)
    assert refusal(truststore_location=file).option.startswith("kafka.ssl.truststore.")


@given(st.lists(st.binary(min_size=1, max_size=200)))
def test_blocks_come_back(bodies: list[bytes]) -> None:
    text = "".join(
        f"\nnoise - -- -----BEGIN CERTIFICATE-----\n{base64.b64encode(body).decode()}"
        "-----END CERTIFICATE-----"
        for body in bodies
    )
    blocks = pem_blocks(text)
    assert [base64.b64decode(block.text.split("-----")[2]) for block in blocks] == bodies
