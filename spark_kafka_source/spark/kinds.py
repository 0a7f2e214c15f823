"""The kinds of option values: their description for the reference, and their parsing."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar, cast

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import INT64_MAX, Settings

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Texts = Mapping[str, str]
"""The given texts, by the names of options in lower case."""

TOPIC_NAMES = (
    "Names have up to 249 letters, digits, dots, dashes and underscores, and are not '.' or '..'"
)
"""Kafka's rule for the name of a topic, in words."""

TOPIC_NAME = r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}"

_BYTE_SIZE = r"([0-9]{1,18})\s*([kmg]?)b?"
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION = r"([0-9]{1,18})\s*([a-z]*)"
_UNIT_MS = {
    "": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """The values that an option `takes`, in words, and its `default` as a user would write it.

    `read` takes the option's name and the given texts. It raises `ConfigurationError`.
    """

    takes: str
    default: str
    read: Callable[[str, Texts], T_co]


def like(default: T, *, minimum: int = 0, maximum: int = INT64_MAX) -> Kind[T]:
    """Return the kind of the default's type, as a `setting` has it: numbers, words, texts."""

    def read(name: str, texts: Texts) -> T:
        found = Settings(texts).like(default, name, minimum=minimum, maximum=maximum)
        return cast(T, found)

    return Kind(_takes(default, minimum), _written(default), read)


def parsed(takes: str, parse: Callable[[str, str], T], default: str = "") -> Kind[T]:
    """Return the kind whose `parse` gets the option's name and its text, or `default`."""
    return Kind(takes, default, lambda name, texts: parse(name, texts.get(name.lower(), default)))


def as_written(takes: str, default: str = "") -> Kind[str]:
    """Return the kind of a text that is not parsed."""
    return parsed(takes, lambda _, text: text, default)


def if_given(kind: Kind[T]) -> Kind[T | None]:
    """Return the kind with None for an option that is not given. `kind`'s default is an example."""

    def read(name: str, texts: Texts) -> T | None:
        return kind.read(name, texts) if name.lower() in texts else None

    return Kind(kind.takes, "", read)


def one_of(default: str, known: Mapping[str, T]) -> Kind[T]:
    """Return the kind that maps each word of `known` to its value."""

    def parse(name: str, text: str) -> T:
        word = text.strip().lower()
        if word not in known:
            raise ConfigurationError(name, "found {}", f"Give {' or '.join(known)}", word)
        return known[word]

    return parsed(_words(known), parse, default)


def byte_size(default: str, allowed: range) -> Kind[int]:
    """Return the kind for a number of bytes, such as `1024` or `64m`."""
    least, most = allowed[0], allowed[-1]

    def parse(name: str, text: str) -> int:
        match = re.fullmatch(_BYTE_SIZE, text.strip().lower())
        size = int(match[1]) * _BYTES[match[2]] if match else 0
        if size not in allowed:
            expected = f"Give {least} to {most} bytes, or a number with k, m or g, as in '64m'"
            raise ConfigurationError(name, "found {}", expected, text)
        return size

    bounds = "" if most == INT64_MAX else f", `{_in_units(least)}` to `{_in_units(most)}`"
    return parsed(f"bytes, as `64m`{bounds}", parse, default)


def duration_ms(default: str) -> Kind[int]:
    """Return the kind for a time in ms, or with a unit, such as `15m`."""
    units = [*filter(None, _UNIT_MS)]

    def parse(name: str, text: str) -> int:
        text = text.strip().lower()
        match = re.fullmatch(_DURATION, text)
        if not match or match[2] not in _UNIT_MS:
            expected = f"Give a number and a unit ({', '.join(units)}), as in {default!r}"
            raise ConfigurationError(name, "found {}", expected, text)
        return int(match[1]) * _UNIT_MS[match[2]]

    return parsed(f"ms, or a number with {_words(units)}", parse, default)


def _takes(default: object, minimum: int) -> str:
    if isinstance(default, bool):
        return _words(("true", "false"))
    if isinstance(default, Enum):
        return _words(map(str, type(default)))
    if isinstance(default, int):
        return f"a whole number from {minimum}"
    return "a secret text" if isinstance(default, Secret) else "a text"


def _in_units(size: int) -> str:
    unit = max((each for each in _BYTES if size % _BYTES[each] == 0), key=lambda each: _BYTES[each])
    return f"{size // _BYTES[unit]}{unit}"


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in words)


def _written(default: object) -> str:
    if isinstance(default, Secret):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
