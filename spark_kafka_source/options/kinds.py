"""The kinds of option values: their description for the reference, and their parsing."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.unknown import if_resembling
from spark_kafka_source.secret import Secret

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=Enum)

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

TOPIC_NAMES = (
    "Names have up to 249 letters, digits, dots, dashes and underscores, and are not '.' or '..'"
)
"""Kafka's rule for the name of a topic, in words."""

TOPIC_NAME = r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}"

# Users may put a password for another of these options here.
_SECURITY = ("kafka.security.", "kafka.ssl.", "kafka.sasl.")
_FRACTION = r"[0-9]{0,9}\.?[0-9]{1,9}"
_BYTE_SIZE = r"([0-9]{1,18})\s*([kmg]?)b?"
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION = r"([0-9]{1,18})\s*([a-z]*)"
_UNIT_MS = {
    "": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """The values that an option `takes`, in words, and its `default` as a user would write it.

    `read` takes the option's name, and its text or None if it is not given. It raises
    `ConfigurationError`. `value` is the default itself, where it is known without reading.
    """

    takes: str
    default: str
    read: Callable[[str, str | None], T_co]
    value: Any = field(default_factory=lambda: MISSING)


def parsed(takes: str, parse: Callable[[str, str], T], default: str = "") -> Kind[T]:
    """Return the kind whose `parse` gets the option's name and its text, or `default`."""
    return Kind(takes, default, lambda name, text: parse(name, default if text is None else text))


def if_given(kind: Kind[T]) -> Kind[T | None]:
    """Return the kind with None for an option that is not given. `kind`'s default is an example."""
    return Kind(
        kind.takes, "", lambda name, text: None if text is None else kind.read(name, text), None
    )


def string(default: str = "", takes: str = "a text") -> Kind[str]:
    """Return the kind of a text that is taken as it is written."""
    return _with_value(default, takes, lambda _, text: text)


def secret() -> Kind[Secret]:
    """Return the kind of a text that is never shown. Spaces around it are left out, as in Kafka."""
    return _with_value(Secret(""), "a secret text", lambda _, text: Secret(text.strip()))


def int32(default: int, minimum: int = 0, maximum: int = INT32_MAX) -> Kind[int]:
    """Return the kind of a whole number from `minimum` to `maximum`."""

    def parse(name: str, text: str) -> int:
        text = text.strip()
        digits = text.removeprefix("-")
        # Python refuses to convert thousands of digits.
        number = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
        if number is None or not minimum <= number <= maximum:
            expected = f"Give a whole number from {minimum} to {maximum}, as in '{default}'"
            raise ConfigurationError(name, "found {}", expected, text)
        return number

    upper = "" if maximum in (INT32_MAX, INT64_MAX) else f" to {maximum}"
    return _with_value(default, f"a whole number from {minimum}{upper}", parse)


def int64(default: int, minimum: int = 0) -> Kind[int]:
    """Return the kind of a whole number from `minimum` on."""
    return int32(default, minimum, INT64_MAX)


def fraction(default: float, minimum: float, maximum: float) -> Kind[float]:
    """Return the kind of a number from `minimum` to `maximum`."""

    def parse(name: str, text: str) -> float:
        text = text.strip()
        number = float(text) if re.fullmatch(_FRACTION, text, re.ASCII) else -1.0
        if not minimum <= number <= maximum:
            expected = f"Give a number from {minimum} to {maximum}"
            raise ConfigurationError(name, "is out of bounds", expected)
        return number

    return _with_value(default, f"{minimum} to {maximum}", parse)


def boolean(default: bool) -> Kind[bool]:
    """Return the kind that is `true` or `false`."""

    def parse(name: str, text: str) -> bool:
        text = text.strip().lower()
        if text not in ("true", "false"):
            raise ConfigurationError(name, "found {}", "Give 'true' or 'false'", text)
        return text == "true"

    return _with_value(default, _words(("true", "false")), parse)


def choice(default: E) -> Kind[E]:
    """Return the kind of the default's enum: its members' texts, in upper or lower case."""
    known = {str(each): each for each in type(default)}

    def parse(name: str, text: str) -> E:
        text = text.strip()
        lowered = {word.lower(): each for word, each in known.items()}
        if text.lower() not in lowered:
            shown = if_resembling(text, known) if name.startswith(_SECURITY) else text
            expected = f"Give one of {', '.join(known)}"
            raise ConfigurationError(name, "found {}", expected, shown)
        return lowered[text.lower()]

    return _with_value(default, _words(known), parse)


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


def _with_value(default: T, takes: str, parse: Callable[[str, str], T]) -> Kind[T]:
    written = str(default).lower() if isinstance(default, bool) else str(default)
    return Kind(
        takes,
        "" if isinstance(default, Secret) else written,
        lambda name, text: default if text is None else parse(name, text),
        default,
    )


def _in_units(size: int) -> str:
    unit = max((each for each in _BYTES if size % _BYTES[each] == 0), key=lambda each: _BYTES[each])
    return f"{size // _BYTES[unit]}{unit}"


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in words)
