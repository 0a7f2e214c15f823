"""The names of settings as the users of each front write them.

Texts name a setting of Kafka's or a registry's, and one of keys or values, as Spark's option, in
quotes: `'kafka.fetch.min.bytes'`, `'value.format'`. A front whose users write it in another way
calls its code within `spelt`: errors that are made there show the users' own names.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

Spelling = Mapping[str, str]
"""What users write, by the option of Spark that means the same."""

AS_OPTIONS: Spelling = MappingProxyType({})
"""That of Spark's users, whose names the texts have already."""

# Only what is in the spelling is replaced: a topic may be called 'kafka.events'.
_NAMED = re.compile(
    r"'((?:kafka|schema\.registry|key|value|auto|normalize)\.[a-z0-9.*]+|badRecords)'"
)
_current: ContextVar[Spelling] = ContextVar("spelling", default=AS_OPTIONS)


def current_spelling() -> Spelling:
    """That of the front within whose call this is."""
    return _current.get()


def as_written(text: str, spelling: Spelling | None = None) -> str:
    """The text with its settings named by this spelling, or else by the current one."""
    names = current_spelling() if spelling is None else spelling
    return _NAMED.sub(lambda match: f"'{names.get(match[1], match[1])}'", text) if names else text


@contextmanager
def spelt(spelling: Spelling) -> Iterator[None]:
    """Within it, errors name settings by this spelling. The outermost front is what users see.

    A thread that is started within it needs `contextvars.copy_context().run`.
    """
    token = _current.set(_current.get() or spelling)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def renamed(names: Spelling) -> Iterator[None]:
    """Within it, errors that name one of these settings name the one that has its place.

    That is shown as the users of the front write it, and the others are, too.
    """
    outer = _current.get()
    token = _current.set({**outer, **{name: outer.get(to, to) for name, to in names.items()}})
    try:
        yield
    finally:
        _current.reset(token)
