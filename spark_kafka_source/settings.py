"""Typed settings, read from options. A field of a dataclass declares a setting.

`fetch_min_bytes: int = setting(1)` in a dataclass is enough to have the option
`kafka.fetch.min.bytes`. Names are those of https://kafka.apache.org/documentation/#consumerconfigs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

PREFIX = "kafka."
"""The prefix of options that are Kafka's own settings."""

SECURITY = ("kafka.security.", "kafka.ssl.", "kafka.sasl.")
"""The prefixes of the security options. Some have passwords, tokens or keys."""

MINIMUM, MAXIMUM, MEANING, NAME = "minimum", "maximum", "meaning", "name"
"""The keys in the metadata of a field that is a setting."""

_MOST_COMPARED = 100
_A_SLIP = 0.5
_A_LIKENESS = 0.75


def setting(
    default: T, *, minimum: int = 0, maximum: int = INT32_MAX, meaning: str = "", name: str = ""
) -> T:
    """Declare a field that an option sets.

    `default` gives the type. `minimum` and `maximum` are bounds for numbers. `meaning` is a
    sentence for the reference, for facts that are not in Kafka's documentation. `name` is the
    option's name without its prefix, if it is not the field's with dots.
    """
    metadata = {MINIMUM: minimum, MAXIMUM: maximum, MEANING: meaning, NAME: name}
    found: T = field(default=default, metadata=metadata)
    return found


def settings_of(config_type: type[Any], prefix: str = PREFIX) -> dict[str, Field[Any]]:
    """Return the fields of a dataclass that are settings, by the names of their options."""
    declared = (each for each in fields(config_type) if MINIMUM in each.metadata)
    return {
        prefix + (each.metadata[NAME] or each.name.replace("_", ".")): each for each in declared
    }


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of one source, by their names in lower case, read as typed values.

    Callers give names in their usual spelling. An invalid value raises a `ConfigurationError` that
    names the option.
    """

    # Some of the values are passwords.
    values: Mapping[str, str] = field(repr=False)

    def read(self, config_type: type[T], prefix: str = PREFIX, /, **known: object) -> T:
        """Create a `config_type`. Its settings have their values from the options, or defaults.

        The names of the options begin with `prefix`. `known` has values for other fields.
        """
        found = {
            each.name: self.like(
                each.default,
                name,
                minimum=each.metadata[MINIMUM],
                maximum=each.metadata[MAXIMUM],
            )
            for name, each in settings_of(config_type, prefix).items()
        }
        return config_type(**known, **found)

    def like(
        self, default: Any, name: str, *, minimum: int = 0, maximum: int = INT64_MAX
    ) -> object:
        """Return a value of the default's type. `minimum` and `maximum` are bounds for numbers."""
        if isinstance(default, bool):
            return self.boolean(name, default)
        if isinstance(default, Enum):
            return self.choice(name, default)
        if isinstance(default, int):
            return self.integer(name, default, minimum=minimum, maximum=maximum)
        if isinstance(default, Secret):
            return self.secret(name)
        return self.text(name, default)

    def text(self, name: str, default: str) -> str:
        """Return the value as it is written."""
        return self.values.get(name.lower(), default)

    def secret(self, name: str) -> Secret:
        """Return the value without spaces around it, as in Kafka. Empty if it is not given."""
        return Secret(self.text(name, "").strip())

    def integer(
        self, name: str, default: int, *, minimum: int = 0, maximum: int = INT64_MAX
    ) -> int:
        """Return a whole number from `minimum` to `maximum`."""
        text = self.text(name, str(default)).strip()
        digits = text.removeprefix("-")
        # Python refuses to convert thousands of digits.
        number = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
        if number is None or not minimum <= number <= maximum:
            expected = f"Give a whole number from {minimum} to {maximum}, as in '{default}'"
            raise _refused(name, text, expected)
        return number

    def boolean(self, name: str, default: bool) -> bool:
        """Return the value of an option that is `true` or `false`."""
        text = self.text(name, str(default)).strip().lower()
        if text not in ("true", "false"):
            raise _refused(name, text, "Give 'true' or 'false'")
        return text == "true"

    def choice(self, name: str, default: E) -> E:
        """Return the member of the default's enum for the value, in upper or lower case."""
        known = {str(each): each for each in type(default)}
        lowered = {text.lower(): each for text, each in known.items()}
        text = self.text(name, str(default)).strip()
        if text.lower() not in lowered:
            # The user may have put a password for another security option here.
            found = if_resembling(text, known) if name.startswith(SECURITY) else text
            raise _refused(name, found, f"Give one of {', '.join(known)}")
        return lowered[text.lower()]


def nearest(name: str, known: Iterable[str], cutoff: float = _A_LIKENESS) -> str | None:
    """Return the option that a misspelt name may mean, or None. `cutoff` is at most 1.

    It has the same words in another order, or is alike. The comparison leaves out the prefix
    `kafka.`: all of Kafka's options have it, and many users forget it.
    """
    by_text = {each.lower().removeprefix(PREFIX): each for each in known}
    text = name.lower().removeprefix(PREFIX)[:_MOST_COMPARED]
    words = sorted(text.split("."))
    for each, option in by_text.items():
        if len(each) == len(text) and sorted(each.split(".")) == words:
            return option
    close = _close_matches(text, by_text, cutoff)
    return by_text[close[0]] if close else None


def if_resembling(text: str, known: Iterable[str]) -> str | Secret:
    """Return the text if it resembles a known one, otherwise hide it.

    It may be a misplaced password.
    """
    lowered = text.lower()[:_MOST_COMPARED]
    return text if _close_matches(lowered, map(str.lower, known), _A_SLIP) else Secret(text)


def _close_matches(text: str, known: Iterable[str], cutoff: float) -> list[str]:
    # Only a misspelt option needs it, and most processes have none.
    from difflib import get_close_matches  # noqa: PLC0415

    return get_close_matches(text, list(known), n=1, cutoff=cutoff)


def _refused(name: str, text: str | Secret, expected: str) -> ConfigurationError:
    return ConfigurationError(name, "found {}", expected, text)
