"""Checks of a registry, and of the clocks: a broker tells no time, so only hints can be had."""

import json
import time
from contextlib import closing
from email.utils import parsedate_to_datetime

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.doctor.finding import Finding, failed, ok, timed, unknown, wrong
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.offsets import offsets_for_times
from spark_kafka_source.net import Deadline, TlsError
from spark_kafka_source.registry import RegistryConfig
from spark_kafka_source.registry.config import USER_INFO_OPTION
from spark_kafka_source.registry.errors import RegistryDeniedError
from spark_kafka_source.registry.refusals import refusal
from spark_kafka_source.registry.server import Question, RegistryServer

MOST_SKEW_SECONDS = 5
"""A larger difference of two clocks is wrong: tokens and timestamps go by the clock."""

_URL = "--registry"
_TRUSTSTORE = "schema.registry.ssl.truststore.location"
_QUESTION = Question("the types of schemas", "/schemas/types")
_MAX_TIMESTAMP = -3
_OK, _NO_SUCH_PATH = 200, 404


def check_registry(config: RegistryConfig, deadline: Deadline) -> list[Finding]:
    """Return the findings for each url of the registry, and for its clock."""
    findings: list[Finding] = []
    for url in config.urls:
        dates: list[str] = []
        server = RegistryServer(url, config)
        findings.append(timed(lambda: _reaches(server, config, deadline, dates)))  # noqa: B023  # called at once
        findings += [_clock(str(url.address), date) for date in dates]
    return findings


def check_newest(client: KafkaClient, topic: str, deadline: Deadline) -> list[Finding]:
    """Return a finding for records from the future, which point at a clock that is wrong."""
    timeout_ms = max(1, deadline.remaining_ms() // 2)  # It asks twice.
    try:
        client.run(
            client.retrying(
                "Metadata", lambda until: client.topics([topic], until), timeout_ms=timeout_ms
            )
        )
        partitions = client.cluster.topics[topic].topic_partitions
        times = dict.fromkeys(partitions, _MAX_TIMESTAMP)
        newest = client.run(offsets_for_times(client, times, timeout_ms=timeout_ms))
    except (KafkaError, KeyError) as error:
        return [unknown("clock", topic, f"no timestamps of records: {str(error)[:200]}")]
    now_ms = time.time_ns() // 1_000_000
    last_ms = max((at.timestamp_ms for at in newest.values()), default=-1)
    if last_ms < 0:
        return [unknown("clock", topic, "the topic has no record to compare with")]
    if last_ms - now_ms > MOST_SKEW_SECONDS * 1000:
        text = f"the newest record is {(last_ms - now_ms) / 1000:.0f} s in the future"
        remedy = "Compare the clocks here, on the brokers and of the producers with NTP"
        return [wrong("clock", topic, text, remedy, "--topic")]
    return [ok("clock", topic, "no record is from the future")]


def _reaches(
    server: RegistryServer, config: RegistryConfig, deadline: Deadline, dates: list[str]
) -> Finding:
    subject = str(server.url.address)
    with closing(server):
        try:
            answer = server.ask(_QUESTION, deadline)
            dates.append(answer.headers.get("date", ""))
            if answer.status not in (_OK, _NO_SUCH_PATH):
                raise refusal(answer, subject, _QUESTION.path, config)
        except RegistryDeniedError as error:
            return failed("registry", subject, error, USER_INFO_OPTION, "Check the credentials")
        except TlsError as error:
            return failed("registry", subject, error, _TRUSTSTORE, "Check the certificates")
        except KafkaError as error:
            return failed("registry", subject, error, _URL, "Check the url")
    if answer.status == _NO_SUCH_PATH:
        remedy = "Check the path of the url"
        return wrong("registry", subject, "it answers 404: is it a schema registry?", remedy, _URL)
    if not _has_types(answer.body):
        text = "it answers, but not with the types of schemas: is it a schema registry?"
        return wrong("registry", subject, text, "Check the url", _URL)
    return ok("registry", subject, "it answers")


def _has_types(body: bytes) -> bool:
    try:
        types = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(types, list) and all(isinstance(name, str) for name in types)


def _clock(subject: str, date: str) -> Finding:
    try:
        skew = time.time() - parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return unknown("clock", subject, "the registry tells no time")
    if abs(skew) > MOST_SKEW_SECONDS:
        text = (
            f"this clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the registry's"
        )
        return wrong("clock", subject, text, "Set both clocks by NTP", _URL)
    return ok("clock", subject, f"within {MOST_SKEW_SECONDS} s of the registry's")
