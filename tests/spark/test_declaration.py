"""The options of the source and of the sink. Parsing, reasons and tables come from them."""

from dataclasses import fields

import pytest

from spark_kafka_source.net import SASL_OPTIONS
from spark_kafka_source.net.sasl import SaslSettings
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.spark.all_options import OPTIONS
from spark_kafka_source.spark.source.options import OF_A_MEMBER, SourceOptions
from tools.options_table import MARKS, REFERENCE, reference

OF_JAVA = ("kafka.", "schema.registry.ssl.")
"""The beginnings of the names that Kafka's own page explains."""


def test_each_option_is_declared_once_and_says_what_it_means() -> None:
    assert len(OPTIONS) == len({name.lower() for name in OPTIONS})
    for each in OPTIONS.values():
        assert each.use, each.name
        assert each.meaning or each.name.startswith(OF_JAVA), each.name
        assert not each.meaning.endswith("."), each.name
        assert "|" not in each.meaning + each.kind.takes, each.name


def test_each_option_of_sasl_has_words() -> None:
    assert all(each.meaning and each.kind.takes for each in SASL_OPTIONS.values())


@pytest.mark.parametrize(
    "login",
    [
        {"mechanism": "GSSAPI"},
        {
            "mechanism": "OAUTHBEARER",
            "oauthbearer.token.endpoint.url": "https://a/",
            "oauthbearer.client.credentials.client.id": "id",
            "oauthbearer.client.credentials.client.secret": "secret",
        },
    ],
    ids=lambda login: login["mechanism"],
)
def test_what_the_table_of_sasl_says_is_not_given_is_as_good_as_given(
    login: dict[str, str],
) -> None:
    given = {f"kafka.sasl.{name}": value for name, value in login.items()}
    defaults = {name: each.kind.default for name, each in SASL_OPTIONS.items() if each.kind.default}
    with_defaults, without = (
        SaslSettings.from_settings(Settings(each), tls=True) for each in (defaults | given, given)
    )
    assert with_defaults == without


def test_each_field_of_the_source_is_read() -> None:
    by_hand = {"client", "hidden", "typed_columns"}
    assert by_hand == {each.name for each in fields(SourceOptions) if not each.metadata}


def test_what_the_tables_say_is_not_given_is_as_good_as_given() -> None:
    given = {"kafka.group.id": "g", "kafka.bootstrap.servers": "a:1"}
    for each in {**OPTIONS, **OF_A_MEMBER}.values():
        if each.kind.default:
            by_default = {each.name.lower(): each.kind.default}
            assert each.of(Settings(given | by_default)) == each.of(Settings(given)), each.name


def test_the_page_has_the_tables() -> None:
    _, tables, _ = MARKS.split(REFERENCE)
    assert tables == reference(), "run `make options`"
