"""Security options: their values, and errors for options without an effect."""

import pickle

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import (
    SECURITY_OPTIONS,
    SecurityProtocol,
    SecuritySettings,
)
from spark_kafka_source.options.declaration import Settings, Use
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.secret import Secret

PROTOCOL = "kafka.security.protocol"


def read(protocol: str, **options: str) -> SecuritySettings:
    named = {f"kafka.{name.replace('_', '.')}": value for name, value in options.items()}
    return SecuritySettings.from_settings(Settings({PROTOCOL: protocol} | named))


def refusal(protocol: str, **options: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        read(protocol, **options)
    return caught.value


def test_nothing_given_is_plaintext() -> None:
    assert SecuritySettings.from_settings(Settings({})) == SecuritySettings()
    assert SecuritySettings().protocol is SecurityProtocol.PLAINTEXT


@pytest.mark.parametrize("text", ["ssl", " SSL ", "Ssl"])
def test_a_protocol_is_read_however_it_is_written(text: str) -> None:
    found = read(text)
    assert (found.protocol, found.tls is not None) == (SecurityProtocol.SSL, True)


def test_an_unknown_protocol_is_refused() -> None:
    assert refusal("TLS").option == PROTOCOL


def test_settings_travel_and_show_no_secret() -> None:
    found = read(
        "SSL",
        ssl_truststore_password="canary",
        ssl_keystore_password="canary",
        ssl_keystore_key="canary",
        ssl_key_password="canary",
    )
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(pickle.loads(pickle.dumps(found))) == hash(found)
    assert found.tls is not None
    assert found.tls.ssl_key_password == Secret("canary")
    assert "canary" not in repr(found)


@pytest.mark.parametrize("option", sorted(SECURITY_OPTIONS.keys() - {PROTOCOL}))
def test_an_option_that_would_do_nothing_is_refused(option: str) -> None:
    given = {option.removeprefix("kafka.").replace(".", "_"): "x"}
    found = refusal("PLAINTEXT", **given)
    assert found.option == option
    assert "kafka.security.protocol" in str(found)


def test_a_slip_could_leave_the_door_open_and_is_refused() -> None:
    """Without the truststore option a query would trust all authorities of the system."""
    found = refusal("SSL", ssl_truststore_locatoin="/ca.pem")
    assert "Did you mean 'kafka.ssl.truststore.location'?" in str(found)


def test_settings_of_java_only_are_ignored() -> None:
    for option in other_names(Use.CONSUMER).reasons:
        read("SSL", **{option.removeprefix("kafka.").replace(".", "_"): "x"})
