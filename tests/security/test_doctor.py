"""The doctor on a secured broker: it reports a user's rights, and shows no secret."""

import json

import pytest

from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing import LocalKafka
from tests.security.acls import allow
from tests.security.options import USERS, options_of

pytestmark = pytest.mark.kafka


def test_rights_are_told_and_no_secret_is(
    secured: LocalKafka, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    secured.create_topic(topic)
    allow(secured, "canary", "READ", topic=topic)
    allow(secured, "bob", "READ", group=topic)
    allow(secured, "bob", "WRITE", transactional_id=topic)
    options = options_of(secured, "SASL_SSL", "PLAIN", user="canary")
    servers = options.pop("kafka.bootstrap.servers")
    config = [f"--config={name.removeprefix('kafka.')}={value}" for name, value in options.items()]
    words = ["--topic", topic, "--group", topic, "--transactional-id", topic, "--timeout", "120"]
    assert main(["doctor", "-b", servers, "--json", *words, *config]) == 1
    shown = capsys.readouterr()
    assert USERS["canary"] not in shown.out + shown.err
    rows = [json.loads(line) for line in shown.out.splitlines()]
    found = {(row["check"], row["verdict"], row["found"]) for row in rows}
    assert ("login", "ok", "SASL_SSL, PLAIN") in found
    (tls,) = [row for row in rows if row["check"] == "tls"]
    assert tls["verdict"] == "ok"
    assert "for tests only" in tls["found"]
    assert ("topic right", "ok", "READ is granted") in found
    assert ("topic right", "wrong", "WRITE is not granted") in found
    assert ("group right", "wrong", "DESCRIBE is not granted") in found
    assert ("transactional id right", "wrong", "DESCRIBE is not granted") in found
