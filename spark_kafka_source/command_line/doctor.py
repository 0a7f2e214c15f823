"""The command `doctor`: what works between this client and a cluster, and what does not."""

import argparse

from spark_kafka_source.command_line.configuration import configuration, of_a_producer
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.doctor import Finding, Scope, Verdict, examine
from spark_kafka_source.doctor.spark import check_spark
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import RegistryConfig
from spark_kafka_source.secret import Secret

_COLUMNS = ("ok", "check", "subject", "found", "ms", "remedy", "option")
_SIGNS = {Verdict.OK: "✓", Verdict.WRONG: "✗", Verdict.UNKNOWN: "?"}
_URL = "schema.registry.url"
_TRANSACTIONAL_ID = "transactional.id"
# A session may start a JVM, and may wait for executors.
_TIMES_FOR_SPARK = 6


def doctor(arguments: argparse.Namespace, output: Output) -> int:
    """Show a row for each check. Return 1 if something is wrong."""
    given = configuration(arguments)
    registry = {
        name: given.pop(name) for name in list(given) if name.startswith("schema.registry.")
    }
    settings = _texts(given)
    if arguments.transactional_id is not None:
        settings.setdefault(_TRANSACTIONAL_ID, arguments.transactional_id)
    only = of_a_producer(given)
    of_consumer = {name: value for name, value in given.items() if name not in only}
    config = ConsumerConfig.from_arguments(of_consumer, None)
    scope = Scope(
        arguments.topic,
        arguments.group,
        arguments.transactional_id,
        _registry(registry, arguments.registry),
        settings,
    )
    findings = examine(config.client, scope, arguments.timeout * 1000)
    if arguments.spark:
        findings += check_spark(arguments.timeout * 1000 * _TIMES_FOR_SPARK)
    if output.as_json:
        output.rows([_document(finding) for finding in findings], ())
    else:
        output.rows([_row(finding) for finding in findings], _COLUMNS)
    return int(any(finding.verdict is Verdict.WRONG for finding in findings))


def _texts(given: dict[str, object]) -> dict[str, str]:
    return {
        name: value.reveal() if isinstance(value, Secret) else str(value)
        for name, value in given.items()
    }


def _registry(given: dict[str, object], url: str | None) -> RegistryConfig | None:
    values = _texts(given)
    if url is not None:
        values[_URL] = url
    if _URL not in values:
        return None
    return RegistryConfig.from_settings(Settings(values))


def _row(finding: Finding) -> dict[str, object]:
    return _document(finding) | {"ok": _SIGNS[finding.verdict], "ms": finding.took_ms}


def _document(finding: Finding) -> dict[str, object]:
    return {
        "check": finding.check,
        "subject": finding.subject,
        "verdict": finding.verdict.value,
        "found": finding.found,
        "took_ms": finding.took_ms,
        "remedy": finding.remedy,
        "option": finding.option,
    }
