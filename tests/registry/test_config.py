"""The options `schema.registry.*`: their values, and errors for wrong ones."""

import base64
import logging
import pickle
from pathlib import Path

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import Address
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import REGISTRY_OPTIONS, RegistryConfig
from spark_kafka_source.secret import Secret
from spark_kafka_source.spelling import spelt
from tests.registry.conftest import config
from tools.certificates import Certified

CANARY = "hunter2-canary"


def shown(found: RegistryConfig) -> list[str]:
    """Return the headers for all urls."""
    return [found.authorization(url).reveal() for url in found.urls]


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def refused(url: str = "https://r", **options: str) -> str:
    with pytest.raises(ConfigurationError) as error:
        config(url, **options)
    assert CANARY not in str(error.value) + repr(error.value) + repr(error.value.args)
    return str(error.value)


def test_urls_are_taken_in_order() -> None:
    found = config(" https://a:8081/ , http://[::1]:81/apis/ccompat/v7/,https://b,https://b/ ")
    assert [str(url) for url in found.urls] == [
        "https://a:8081",
        "http://[::1]:81",
        "https://b:443",
    ]
    assert [url.path for url in found.urls] == ["", "/apis/ccompat/v7", ""]
    assert found.urls[1].address == Address("::1", 81)
    assert found.timeout_ms == 30_000


def test_credentials_come_from_one_place(caplog: pytest.LogCaptureFixture) -> None:
    info = f"me:{CANARY}"
    assert shown(config("https://r", basic_auth_user_info=info)) == [basic(info)]
    parts = {"basic_auth_user": "me", "basic_auth_password": CANARY}
    assert shown(config("https://r", **parts)) == [basic(info)]
    assert shown(config("https://r", bearer_auth_token=CANARY)) == [f"Bearer {CANARY}"]
    urls = f"https://me:{CANARY}@a,https://b,https://y%6fu:p%40:q@c"
    assert shown(config(urls)) == [basic(info), "", basic("you:p@:q")]
    assert not caplog.records


def test_who_is_on_the_way_may_read_what_goes_without_tls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        config("http://plain.example", bearer_auth_token=CANARY)
    (text,) = caplog.messages
    assert text.startswith("http://plain.example:80: without https anyone on the way")
    assert CANARY not in text


def test_nothing_shows_a_secret() -> None:
    found = config(f"https://me:{CANARY}@a", ssl_key_password=CANARY)
    for each in (repr(found), str(found.urls[0]), repr(found.urls)):
        assert CANARY not in each
    assert pickle.loads(pickle.dumps(found)) == found  # our own bytes
    assert hash(found) == hash(pickle.loads(pickle.dumps(found)))
    told = f"{CANARY} and {shown(found)[0]}, me:{CANARY}"
    assert found.without_secrets(told) == "... and Basic ..., ..."


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("", "'schema.registry.url': is missing. Give 'https://host:port'"),
        (" , ", "is missing"),
        (CANARY, "is not a url. Give"),
        ("localhost:8081", "is not a url. Give 'https://host:port'"),
        ("ftp://r", "'ftp://r' is not a url of http or https"),
        ("https://", "'https://' is not a url"),
        ("https://r:port", "'https://r:port' is not a url"),
        ("https://r:0", "'https://r:0' is not a url"),
        ("https://r:65536", "is not a url"),
        ("https://[::1", "is not a url"),
        (f"https://me:{CANARY}@r:x", "'r:x' is not a url"),
        (f"https://r/?key={CANARY}", "'https://r/' has more than a host, a port and a path"),
        ("https://r/#x", "has more than a host"),
        ("https://r/a b", "is not a url of http or https"),
        ("https://r/\r\nX: y", "is not a url"),
        ("https://é", "is not a url of http or https"),
        (f"https://{CANARY}@r", "has a user without a password. Give 'user:password', or '"),
    ],
)
def test_urls_that_are_none(url: str, text: str) -> None:
    assert text in refused(url)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"basic_auth_user_info": CANARY}, "basic.auth.user.info': has no colon. Give 'user:pass"),
        ({"basic_auth_user": "me"}, "basic.auth.password': is missing"),
        ({"basic_auth_password": CANARY}, "basic.auth.password': has no effect without"),
        (
            {"basic_auth_user": f"me:{CANARY}", "basic_auth_password": "x"},
            "basic.auth.user': has a colon, which a user name cannot have. Use 'schema.registry.",
        ),
        (
            {"basic_auth_user_info": f"me:{CANARY}", "bearer_auth_token": CANARY},
            "bearer.auth.token': is given as well as 'schema.registry.basic.auth.user.info'",
        ),
        (
            {"bearer_auth_token": f"Bearer {CANARY}"},
            "has a character that a token cannot have. Give the",
        ),
        ({"bearer_auth_token": f"{CANARY}\r\nX: y"}, "has a character that a token cannot have"),
        ({"timeout_ms": "0"}, "'schema.registry.timeout.ms': found '0'"),
        ({"basic_auth_user_inf": CANARY}, "Did you mean 'schema.registry.basic.auth.user.info'?"),
        ({"basic_auth_credentials_source": "URL"}, "Leave it out: 'schema.registry.basic.auth"),
        ({"ssl_ca_location": "ca.pem"}, "Did you mean 'schema.registry.ssl.truststore.location'?"),
        ({"zzz": CANARY}, "'schema.registry.zzz': is not supported. See docs/options.md for all"),
        ({"ssl_truststore_location": "/no/ca.pem"}, "'/no/ca.pem' cannot be read: No such file"),
        ({"ssl_keystore_key": CANARY}, "schema.registry.ssl.keystore.certificate.chain': is miss"),
        ({"ssl_protocol": "SSLv3"}, "'schema.registry.ssl.protocol': found 'SSLv3'"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, str], text: str) -> None:
    assert text in refused(**options)
    assert "'kafka." not in refused(**options)


def test_a_user_in_the_url_and_another_option() -> None:
    text = refused(f"https://me:{CANARY}@r", bearer_auth_token=CANARY)
    assert text.startswith(
        "Option 'schema.registry.bearer.auth.token': is given as well as a user in 'schema.regis"
    )


def test_options_of_tls_without_tls_are_refused() -> None:
    text = refused("http://r", ssl_truststore_location="ca.pem")
    assert "no url of 'schema.registry.url' begins with https" in text


def test_errors_have_the_names_that_users_write() -> None:
    names = {"schema.registry.ssl.truststore.location": "schema_registry_ssl_truststore_location"}
    names |= {"kafka.ssl.truststore.location": "ssl_truststore_location"}
    with spelt(names), pytest.raises(ConfigurationError) as error:
        config("https://r", ssl_truststore_location="/no/ca.pem")
    assert error.value.option == "schema_registry_ssl_truststore_location"
    assert error.value.without_values().option == error.value.option
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)  # our own bytes


def test_tls_is_that_of_the_options(tmp_path: Path, ca: Certified) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(ca.certificate_pem)
    found = config("https://r", ssl_truststore_location=str(path))
    assert found.tls is not None
    assert found.tls.ssl_truststore_location == str(path)
    assert config("http://r").tls is None


def test_all_secrets_are_declared_as_such() -> None:
    secrets = {
        name for name, each in REGISTRY_OPTIONS.items() if isinstance(each.kind.value, Secret)
    }
    assert {name for name in REGISTRY_OPTIONS if "password" in name} <= secrets
    for name in secrets:
        settings = Settings({"schema.registry.url": "https://r", name: CANARY})
        try:
            assert CANARY not in repr(RegistryConfig.from_settings(settings))
        except ConfigurationError as error:
            assert CANARY not in str(error)
    assert config("https://r").bearer_auth_token == Secret("")
