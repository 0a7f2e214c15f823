"""Names that are no options: each client says one thing of a name, and leads to its own options."""

from typing import Any

import pytest

from spark_kafka_source.client.arguments import Vocabulary
from spark_kafka_source.consumer import consumer_config, topic_config
from spark_kafka_source.options.declaration import Options, Settings, Use, used_by
from spark_kafka_source.options.judgement import (
    Judgement,
    OtherNames,
    Verdict,
    judged,
    refuse_unknown,
)
from spark_kafka_source.options.other_names import (
    _INSTEAD,
    _MEANT,
    _REFUSED,
    _WITHOUT_EFFECT,
    other_names,
)
from spark_kafka_source.producer import producer_config
from spark_kafka_source.spark.all_options import OPTIONS


def _all(vocabulary: Vocabulary) -> Options:
    return {**vocabulary.known, **vocabulary.own}


OWN: dict[Use, Options] = {
    Use.CONSUMER: _all(consumer_config.VOCABULARY),
    Use.TOPIC_READ: _all(topic_config.VOCABULARY),
    Use.PRODUCER: _all(producer_config.VOCABULARY),
    Use.READ: used_by(OPTIONS, Use.READ),
    Use.WRITE: used_by(OPTIONS, Use.WRITE),
}
"""The options of each client."""
each_client = pytest.mark.parametrize("use", OWN, ids=str)


@each_client
def test_each_name_has_one_meaning(use: Use) -> None:
    names = [
        name
        for table in (_WITHOUT_EFFECT, _REFUSED, _INSTEAD, _MEANT)
        for used, rows in table.items()
        if used & use
        for row in rows.values()
        for name in row.split()
    ]
    assert len(names) == len(set(names))
    assert not {f"kafka.{name}" for name in names} & OWN[use].keys()


@each_client
def test_each_hint_leads_to_an_option(use: Use) -> None:
    assert set(other_names(use).meant.values()) <= OWN[use].keys()


@each_client
@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ca.location", "truststore.location"),
        ("cafile", "truststore.location"),
        ("ca.pem", "truststore.certificates"),
        ("certificate.location", "keystore.location"),
        ("key.location", "keystore.location"),
        ("password", "key.password"),
        ("check.hostname", "endpoint.identification.algorithm"),
    ],
)
def test_a_name_of_tls_is_answered_alike_for_brokers_and_for_a_registry(
    use: Use, name: str, ours: str
) -> None:
    for prefix in ("kafka.", "schema.registry."):
        judgement = other_names(use)._unknown(f"{prefix}ssl.{name}", OWN[use])
        assert f"'{prefix}ssl.{ours}'" in (judgement.text or judgement.hint)


@each_client
def test_what_is_done_anyway_would_be_spoken_of_else(use: Use) -> None:
    others = other_names(use)
    assert others.done.keys() <= others.reasons.keys() | others.refused.keys()


OTHERS = OtherNames(
    reasons={"kafka.idle": "it is late", "kafka.session.ms": "the group has no members"},
    refused={"kafka.no": "Do it"},
    instead={"kafka.list": "Give a list"},
    meant={"kafka.servers": "kafka.hosts"},
    done={"kafka.idle": "yes", "kafka.no": ""},
)
READ = ("kafka.hosts", "minTasks")


def judge(**given: str) -> list[Judgement]:
    values = {name.replace("_", "."): value for name, value in given.items()}
    return judged(Settings(values), READ, lambda: OTHERS)


@pytest.mark.parametrize(
    ("name", "judgement"),
    [
        ("kafka.idle", (Verdict.WITHOUT_EFFECT, "it is late")),
        ("kafka.no", (Verdict.REFUSED, "Do it")),
        ("kafka.list", (Verdict.UNKNOWN, "Give a list")),
        ("kafka.servers", (Verdict.UNKNOWN, "", "kafka.hosts")),
        ("kafka.host", (Verdict.UNKNOWN, "", "kafka.hosts")),
        ("mintask", (Verdict.UNKNOWN, "", "minTasks")),
        ("kafka.idel", (Verdict.UNKNOWN, "'kafka.idle' has no effect either: it is late")),
        ("x", (Verdict.UNKNOWN,)),
    ],
)
def test_a_name_is_judged(name: str, judgement: tuple[Any, ...]) -> None:
    assert judge(**{name: "x"}) == [Judgement(name, *judgement)]


def test_a_slip_is_one_of_a_name_that_is_read_though_other_clients_give_it_no_effect() -> None:
    settings = Settings({"kafka.sesion.ms": "1"})
    for read, near in ((READ, None), ((*READ, "kafka.session.ms"), "kafka.session.ms")):
        (judgement,) = judged(settings, read, lambda: OTHERS)
        assert judgement.near == near


def test_nothing_is_said_of_what_is_read_or_done_anyway() -> None:
    assert judge(**{"kafka.hosts": "a", "mintasks": "1"}) == []
    assert judge(**{"kafka.idle": " Yes ", "kafka.no": ""}) == []
    # The reader of security's settings refuses what it does not know.
    assert judge(**{"kafka.ssl.kay": "x", "kafka.sasl.pasword": "x"}) == []


def test_what_is_refused_comes_first() -> None:
    assert [each.name for each in judge(a="", **{"kafka.no": "x"})] == ["kafka.no", "a"]


def test_what_is_known_of_others_is_looked_at_only_for_a_name_of_theirs() -> None:
    def others() -> OtherNames:
        raise AssertionError

    assert judged(Settings({"mintasks": "1", "kafka.hosts": "a"}), READ, others) == []
    refuse_unknown(Settings({"kafka.hosts": "a", "kafko.x": "1"}), "kafka.", READ)
