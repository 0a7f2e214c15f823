"""Each setting of Kafka's own clients is read, refused, or ignored with a warning and a reason."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path

import pytest

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.net import SECURITY_OPTIONS, ConnectionSettings, TlsSettings
from spark_kafka_source.options.declaration import Use, options_of
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.secret import Secret
from spark_kafka_source.spark.options import parse_sink_options, parse_source_options
from tests.spark.settings import BOOTSTRAP_SERVERS

pytestmark = pytest.mark.java

READING, WRITING = other_names(Use.READ), other_names(Use.WRITE)
ALL_REASONS = {**READING.reasons, **WRITING.reasons}

SECURITY = ("kafka.sasl.", "kafka.security.", "kafka.ssl.")
REFUSED = (
    "kafka.sasl.oauthbearer.assertion.",
    "kafka.sasl.oauthbearer.jwt.validator.class",
    "kafka.ssl.engine.factory.class",
)
"""Security settings. To ignore them would let in the wrong peer, or none."""
OURS = {"kafka.client.id", "kafka.receive.buffer.bytes", "kafka.send.buffer.bytes"}
"""Settings with other defaults than Kafka's: the client id, and buffers of the system's size."""


@pytest.fixture(scope="module")
def defaults(kafka_jars: list[Path]) -> dict[str, dict[str, str]]:
    """Text of each option's default in Kafka's consumer and producer."""
    source = Path(__file__).with_name("ConfigNames.java")
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, kafka_jars))]
    asked = subprocess.run([*command, str(source)], capture_output=True, text=True, check=True)
    found: dict[str, dict[str, str]] = {"consumer": {}, "producer": {}}
    for line in asked.stdout.splitlines():
        client, _, rest = line.partition(" ")
        name, _, default = rest.partition("=")
        found[client][f"kafka.{name}"] = default
    assert all(len(settings) > 50 for settings in found.values())
    return found


READ = {**BOOTSTRAP_SERVERS, "subscribe": "a"}
WRITE = {**BOOTSTRAP_SERVERS, "topic": "a"}
Parse = Callable[[dict[str, str]], object]


def answer(parse: Parse, options: dict[str, str], caplog: pytest.LogCaptureFixture) -> str:
    """Return the error or warning for the options; an empty text if they are read."""
    caplog.clear()
    try:
        parse(options)
    except ConfigurationError as refused:
        return str(refused)
    return caplog.text


@pytest.mark.parametrize(
    ("parse", "given", "reasons"),
    [
        (parse_source_options, READ, READING.reasons),
        (parse_sink_options, WRITE, WRITING.reasons),
    ],
    ids=["reader", "writer"],
)
def test_each_setting_is_read_or_the_reason_is_said(
    parse: Parse,
    given: dict[str, str],
    reasons: Mapping[str, str],
    defaults: dict[str, dict[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for option in sorted({**defaults["consumer"], **defaults["producer"]}):
        if option.startswith(SECURITY):
            continue
        said = answer(parse, {**given, option: "1"}, caplog)
        assert "did you mean" not in said, option
        assert not said.rstrip().endswith("no effect here"), option
        assert "it is for" in said or reasons.get(option, "") in said


def test_each_setting_of_security_is_read_or_refused_or_has_a_reason(
    defaults: dict[str, dict[str, str]],
) -> None:
    named = {option for option in defaults["consumer"] if option.startswith(SECURITY)}
    neither = named - SECURITY_OPTIONS.keys() - ALL_REASONS.keys()
    assert neither
    assert all(option.startswith(REFUSED) for option in neither)


def test_defaults_of_tls_are_kafkas_but_for_the_types_of_stores(
    defaults: dict[str, dict[str, str]],
) -> None:
    kafkas = {
        option: re.sub(r"[\[\] ]|null", "", defaults["consumer"][option])
        for option in options_of(TlsSettings, "kafka.")
        if not option.endswith("store.type")
    }
    ours = {option: options_of(TlsSettings, "kafka.")[option].kind.value for option in kafkas}
    assert kafkas == {
        option: default.reveal() if isinstance(default, Secret) else default
        for option, default in ours.items()
    }


def test_there_is_a_reason_only_for_what_kafka_has(
    defaults: dict[str, dict[str, str]],
) -> None:
    assert ALL_REASONS.keys() <= defaults["consumer"].keys() | defaults["producer"].keys()


def test_what_only_a_producer_has_is_said_to_be_its_own(
    defaults: dict[str, dict[str, str]],
) -> None:
    of_producers = {
        option for option, reason in READING.reasons.items() if "a producer's" in reason
    }
    assert of_producers == defaults["producer"].keys() - defaults["consumer"].keys()


def test_names_and_defaults_are_those_of_kafkas_consumer(
    defaults: dict[str, dict[str, str]],
) -> None:
    ours = {
        option: text_of(declared.kind.value)
        for config_type in (ClientConfig, ConnectionSettings, FetchConfig)
        for option, declared in options_of(config_type).items()
    }
    kafkas = {option: defaults["consumer"][option] for option in ours}
    assert {option for option in ours if ours[option] != kafkas[option]} == OURS


def text_of(default: object) -> str:
    return (default.name if isinstance(default, Enum) else str(default)).lower()
