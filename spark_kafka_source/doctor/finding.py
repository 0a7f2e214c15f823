"""Findings of the doctor, and the errors that become findings."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.spelling import as_written

# Errors name options in quotes: the first that an error names is the one to look at.
_OPTION = re.compile(
    r"'(-b|(?:ssl|sasl|security|bootstrap|schema|basic|bearer|group|topic)\.[a-z.]+)'"
)


class Verdict(Enum):
    """The outcome of a check."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one subject. `remedy` and `option` help where something is wrong."""

    check: str
    subject: str
    verdict: Verdict
    found: str
    took_ms: int | None = None
    remedy: str = ""
    option: str = ""


def ok(check: str, subject: str, found: str) -> Finding:
    """Return a finding of something that is right."""
    return Finding(check, subject, Verdict.OK, found)


def wrong(check: str, subject: str, found: str, remedy: str, option: str = "") -> Finding:
    """Return a finding of something that is wrong. `option` has the name of Spark's option."""
    return Finding(check, subject, Verdict.WRONG, found, None, remedy, _spelt(option))


def unknown(check: str, subject: str, found: str) -> Finding:
    """Return a finding of something that the cluster does not tell."""
    return Finding(check, subject, Verdict.UNKNOWN, found)


def failed(check: str, subject: str, error: KafkaError, option: str, remedy: str = "") -> Finding:
    """Return the finding for an error. Its own option and remedy win over the given ones."""
    text = str(error)
    named = _OPTION.search(text.replace("'kafka.", "'"))
    expected = getattr(error, "expected", "")
    remedy = as_written(expected) or remedy
    name = _spelt(option)
    if named and not option.startswith("-"):
        is_whole = named[1].startswith(("-", "schema.registry."))
        name = named[1] if is_whole else _spelt(f"kafka.{named[1]}")
    return Finding(check, subject, Verdict.WRONG, _without(text, remedy), None, remedy, name)


def timed(check: Callable[[], Finding]) -> Finding:
    """Return the finding of a check, with the time that it took."""
    began_seconds = time.monotonic()
    finding = check()
    return replace(finding, took_ms=round((time.monotonic() - began_seconds) * 1000))


def _spelt(option: str) -> str:
    """Return the name that this front has for the option."""
    return as_written(f"'{option}'").strip("'") if option else ""


def _without(text: str, remedy: str) -> str:
    return text.removesuffix(remedy).rstrip(". ") if remedy else text
