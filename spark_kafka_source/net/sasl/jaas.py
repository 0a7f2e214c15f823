"""`sasl.jaas.config` as in Java: one login module and its options.

https://docs.oracle.com/javase/8/docs/technotes/guides/security/jgss/tutorials/LoginConfigFile.html
as Kafka's client reads it from a property: quoted texts may have the escapes of C.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret

OPTION = "kafka.sasl.jaas.config"
MAXIMUM_CHARACTERS = 64 * 1024
"""Limit for the text. The longest for Kerberos and Kafka have some hundreds of characters."""

# Databricks ships Kafka's and AWS's classes under names of its own.
_SHADED = ("kafkashaded.", "shadedmskiam.")
_CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")
# Words and comments, as java.io.StreamTokenizer finds them with Kafka's settings.
_SKIPPED = r"(?xs)(?: [\x00-\x20] | /\*.*?(?:\*/|\Z) | /(?!\*)[^\r\n]* )*"
_WORD = r"""(?x)
          "(?P<double>(?:[^"\\\r\n]|\\.)*)"
        | '(?P<single>(?:[^'\\\r\n]|\\.)*)'
        | (?P<word>[A-Za-z_$\u00a0-\U0010ffff][A-Za-z_$\u00a0-\U0010ffff0-9.-]*)
        | (?P<mark>[^"'])"""
_ESCAPE = r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)"
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module and its options. Its Java name has no prefix from shading."""

    login_module: str
    options: Mapping[str, Secret] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Return the option's text, or None if it is not given."""
        value = self.options.get(name)
        return None if value is None else value.reveal()

    def boolean(self, name: str) -> bool:
        """Return whether the option is given as `true`."""
        return (self.text(name) or "").lower() == "true"


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the text, and the number of its first character."""

    kind: str
    text: str = field(repr=False)
    at: int


def without_shading(class_name: str) -> str:
    """Return the name of a Java class from before it was moved into another library."""
    for prefix in _SHADED:
        class_name = class_name.removeprefix(prefix)
    return class_name


def parse_jaas(config: Secret) -> JaasEntry:
    """Return the only entry of a JAAS configuration.

    Raises `ConfigurationError`, whose text shows only where the fault is.
    """
    text = config.reveal()
    if len(text) > MAXIMUM_CHARACTERS:
        raise _refused(f"has {len(text)} characters", f"Give at most {MAXIMUM_CHARACTERS}")
    tokens = _tokens(text)
    login_module = without_shading(_next(tokens, "word", "a login module's class").text)
    flag = _next(tokens, "word", "'required' after the login module")
    if flag.text.lower() not in _CONTROL_FLAGS:
        raise _expected(flag, "'required' after the login module")
    options = _options(tokens)
    if next(tokens).kind != "end":
        raise _refused("has more than one login module", "Give one, up to its ';'")
    return JaasEntry(login_module, options)


def _options(tokens: Iterator[_Token]) -> dict[str, Secret]:
    options: dict[str, Secret] = {}
    while (name := next(tokens)).kind != ";":
        if name.kind not in ("word", "quoted"):
            raise _expected(name, "an option's name, or ';' at the end")
        _next(tokens, "=", "'=' after an option's name")
        value = next(tokens)
        if value.kind not in ("word", "quoted"):
            raise _expected(value, "an option's value")
        if name.text in options:
            raise _refused(f"gives an option twice, at character {name.at}", "Give each once")
        options[name.text] = Secret(value.text)
    return options


def _next(tokens: Iterator[_Token], kind: str, expected: str) -> _Token:
    token = next(tokens)
    if token.kind != kind:
        raise _expected(token, expected)
    return token


def _tokens(text: str) -> Iterator[_Token]:
    place = _after_skipped(text, 0)
    while place < len(text):
        match = re.compile(_WORD).match(text, place)
        if not match:
            raise _refused(f"has a quote without its end after character {place}", _EXAMPLE)
        kind, word = match.lastgroup or "", match[match.lastgroup or 0]
        at, place = match.start(kind) + 1, _after_skipped(text, match.end())
        if kind in ("double", "single"):
            yield _Token("quoted", re.sub(_ESCAPE, _unescaped, word), at)
        else:
            yield _Token(word if kind == "mark" else kind, word, at)
    yield _Token("end", "", len(text) + 1)


def _after_skipped(text: str, place: int) -> int:
    match = re.compile(_SKIPPED).match(text, place)
    return match.end() if match else place


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _ESCAPED.get(escaped, escaped)


_EXAMPLE = (
    "Give one entry, as in 'org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="..." password="...";\', with \\" for a quote in a quoted text'
)


def _expected(token: _Token, expected: str) -> ConfigurationError:
    where = "ends" if token.kind == "end" else f"has something else at character {token.at}"
    return _refused(f"{where} where {expected} should stand", _EXAMPLE)


def _refused(found: str, expected: str) -> ConfigurationError:
    return ConfigurationError(OPTION, found, expected)
