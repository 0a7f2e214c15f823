"""Configuration from the command line and a `client.properties`, with Kafka's names."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spark_kafka_source.client.arguments import Vocabulary
from spark_kafka_source.consumer import consumer_config
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.producer import producer_config
from spark_kafka_source.secret import Secret, printable
from spark_kafka_source.spelling import Spelling

_PREFIX = "kafka."
# Unknown options with these prefixes are errors. If they were ignored, a connection could be less
# safe than the user means.
_SECURITY = ("security.", "ssl.", "sasl.")
# The commands join no group.
_GROUP = frozenset({"group.id", "group.instance.id"})
_CONSUMER, _PRODUCER = consumer_config.VOCABULARY, producer_config.VOCABULARY
# The doctor looks at the settings of both, and connects with those of a consumer.
_BOTH = replace(
    _CONSUMER, kind="consumer or producer", known={**_CONSUMER.known, **_PRODUCER.known}
)
_VOCABULARIES = {each.kind: each for each in (_CONSUMER, _PRODUCER, _BOTH)}
_SERVERS = "bootstrap.servers"
# Without one of these, the other options for typed keys and values have no effect.
_FORMATS = {"key.format", "value.format"}

# Kafka's names of settings, and a schema registry's.
_SETTING = re.compile(r"[a-z][a-z0-9]{0,30}(?:[._-][a-z0-9]{1,30})+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
# A name up to the first separator that is not escaped: '=', ':' or white space.
_PROPERTY = re.compile(r"((?:\\.|[^\\=:\s])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)


def configuration(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return arguments for a `KafkaConsumer`, `KafkaAdmin` or `KafkaProducer`.

    Values are `Secret`, except for `--bootstrap-servers`. The command line overrides the file.
    Raises `ConfigurationError`.
    """
    found: dict[str, Any] = {}
    vocabulary = _VOCABULARIES[arguments.client]
    if arguments.config_file is not None:
        given = {_name(each.partition("=")[0]) for each in arguments.config}
        is_typed = "registry" in arguments or bool(_FORMATS & given)
        found |= _of_file(arguments.config_file, vocabulary, is_typed)
    for each in arguments.config:
        name, equals, value = each.partition("=")
        if not equals:
            raise ConfigurationError("--config", "has no '='", "Give 'name=value'")
        name = _name(name)
        # A single word may be a misplaced password, or an argument of a class of this package.
        if "." not in name and not vocabulary.knows(name):
            raise ConfigurationError("--config", "{} is not an option", "Give Kafka's names", name)
        found[name] = Secret(value)
    if arguments.bootstrap_servers is not None:
        found[_SERVERS] = arguments.bootstrap_servers
    not_needed = () if arguments.client == "producer" else _GROUP
    return {name: value for name, value in found.items() if name not in not_needed}


def of_a_producer(given: Mapping[str, Any]) -> set[str]:
    """Return the names of the settings that only a producer has."""
    return {each for each in given if _PRODUCER.knows(each) and not _CONSUMER.knows(each)}


def spelling(arguments: argparse.Namespace) -> Spelling:
    """Return the user's names of settings: Kafka's, as in `--config`, or those of arguments."""
    names = _VOCABULARIES[arguments.client].names(".") | {"kafka.group.id": "GROUP"}
    given = (_name(each.partition("=")[0]) for each in arguments.config)
    names |= {_PREFIX + each: each for each in given if _PREFIX + each not in names}
    may_be_elsewhere = arguments.config_file is not None or arguments.config
    if arguments.bootstrap_servers is not None or not may_be_elsewhere:
        names["kafka.bootstrap.servers"] = "-b"
    names["ports"] = "--port"
    names["to"] = "--by-duration" if getattr(arguments, "ago", None) else "--to-datetime"
    return names


def _name(text: str) -> str:
    return text.strip().replace("_", ".").lower()


def _of_file(path: str, vocabulary: Vocabulary, is_typed: bool) -> dict[str, object]:
    try:
        # Java reads these files as Latin-1.
        text = Path(path).read_text("latin-1")
    except OSError as error:
        failure = f"cannot read {{}}: {error.strerror}"
        expected = "Give a file of 'name=value'"
        raise ConfigurationError("--config-file", failure, expected, path) from None
    found: dict[str, object] = {}
    without_effect = []
    pairs = list(properties(text))
    # A file for Java's clients may name a registry that this command does not use.
    is_typed = is_typed or any(name in _FORMATS for name, _ in pairs)
    for name, value in pairs:
        if _has_effect(name, vocabulary) and (is_typed or not vocabulary.is_own(name)):
            found[name] = Secret(value)
        else:
            without_effect.append((name, value))
    _tell(path, without_effect)
    return found


def _tell(path: str, without_effect: Iterable[tuple[str, str]]) -> None:
    """Name the options without effect. A line of a text, as of a key or password, is a secret."""
    known, others = [], 0
    for name, value in without_effect:
        if _is_setting(name) and value:
            known.append(name)
        else:
            others += 1
    if known:
        names = printable(", ".join(known))
        sys.stderr.write(f"Options without effect here, in {path}: {names}\n")
    if others:
        remedy = "A value of several lines, such as PEM, needs '\\n\\' at the end of each line"
        sys.stderr.write(f"Lines that are no 'name=value', in {path}: {others}. {remedy}\n")


def _is_setting(name: str) -> bool:
    is_known = any(each.knows(name) for each in _VOCABULARIES.values())
    return is_known or _SETTING.fullmatch(name) is not None


def _has_effect(name: str, vocabulary: Vocabulary) -> bool:
    option = _PREFIX + name.lower()
    is_security = name.startswith(_SECURITY) and option not in vocabulary.others().reasons
    return vocabulary.knows(name) or is_security


def properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values in a `java.util.Properties` file, in order."""
    for line in _logical_lines(text):
        match = _PROPERTY.fullmatch(line)
        if match is not None:
            yield _unescaped(match[1]), _unescaped(match[2])


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments.

    A line with an odd number of backslashes at its end continues.
    """
    line = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        part = natural.lstrip(" \t\f")
        if not line and (not part or part[0] in "#!"):
            continue
        line += part
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            line = line[:-1]
            continue
        yield line
        line = ""
    if line:
        yield line


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])

    return _ESCAPE.sub(character, text)
