"""The extension points of Java's clients: none that a setting names is forgotten."""

import re

import pytest

from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer.producer_config import config_from_arguments
from tools.java_clients.consumer import CONSUMER
from tools.java_clients.extension_points import EXTENSIONS, HERE, LEFT_OUT, MARKS, PAGE, render
from tools.java_clients.producer import PRODUCER
from tools.java_clients.rows import JavaClient, Verdict

_TAKES_CLASSES = re.compile(
    r"\.(class|classes|reporters|providers|serializer|deserializer)$|\.assignment\.strategy$"
)
CLIENTS = [CONSUMER, PRODUCER]
NAMED = {name for each in EXTENSIONS for name in each.settings.split()}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.kind)
def test_each_setting_that_takes_classes_has_a_row(client: JavaClient) -> None:
    taking = {name for name in client.settings if _TAKES_CLASSES.search(name)}
    assert taking and taking <= NAMED


def test_the_table_names_only_java_settings_and_methods() -> None:
    settings = {name for client in CLIENTS for name in client.settings}
    methods = {name for client in CLIENTS for name in client.methods[client.main_class]}
    assert settings >= NAMED
    assert methods >= {each.method for each in EXTENSIONS if each.method}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.kind)
def test_what_is_left_out_is_left_out_of_the_settings(client: JavaClient) -> None:
    for each in EXTENSIONS:
        for name in each.settings.split():
            if name in client.settings:
                is_left_out = client.settings[name].verdict is Verdict.LEFT_OUT
                assert is_left_out == (each.verdict is LEFT_OUT), name
    assert {each.verdict for each in EXTENSIONS} == {HERE, LEFT_OUT}


def test_the_page_has_the_table() -> None:
    _, table, _ = MARKS.split(PAGE)
    assert table == render(), "run `make java-clients`"


# -- older Kafka -----------------------------------------------------------------------------------


OLDER = re.compile(r"^\| (`[^|]*) \| (`[^|]*) \|$", re.MULTILINE)


def test_errors_lead_from_older_names_to_todays() -> None:
    """The page has a table of the names that Kafka itself has dropped."""
    _, _, table = PAGE.read_text().partition("## From older Kafka")
    rows = OLDER.findall(table.partition("\n## ")[0])
    assert len(rows) > 5
    for old, todays in rows:
        (wanted,) = re.findall(r"`([a-z.]+)`", todays)
        for name in re.findall(r"`([a-z.]+)`", old):
            with pytest.raises(ConfigurationError) as refused:
                read = ConsumerConfig.from_arguments
                if wanted in PRODUCER.settings and wanted not in CONSUMER.settings:
                    read = config_from_arguments  # type: ignore[assignment]
                read({"bootstrap.servers": "a:1", name: "1"})
            assert f"'{wanted}'" in str(refused.value)
