"""The names of settings in each front: Spark's options, Python arguments, the command line.

In texts, settings of Kafka, of a registry, and of keys or values have the names of Spark's options,
in quotes: `'kafka.fetch.min.bytes'`, `'value.format'`. Another front may have other names. It calls
its code within `spelt`, and errors made there show its own names.
"""

import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar, copy_context
from types import MappingProxyType

from spark_kafka_source.logs import BackgroundThread

Spelling = Mapping[str, str]
"""The name of a setting in a front, by the name of Spark's option with the same meaning."""

AS_OPTIONS: Spelling = MappingProxyType({})
"""The spelling of Spark's options, which are in the texts already."""

# Only names in the spelling are replaced: a topic may be called 'kafka.events'.
_NAMED = (
    r"'((?:kafka|schema\.registry|key|value|auto|normalize)\.[a-z0-9.*]+|badRecords(?:\.topic)?)'"
)
_current: ContextVar[Spelling] = ContextVar("spelling", default=AS_OPTIONS)


def current_spelling() -> Spelling:
    """Return the spelling of the front whose call is running."""
    return _current.get()


def as_written(text: str, spelling: Spelling | None = None) -> str:
    """Return the text with its settings renamed by `spelling` (default: the current one)."""
    names = current_spelling() if spelling is None else spelling
    if not names:
        return text
    return re.sub(_NAMED, lambda match: f"'{names.get(match[1], match[1])}'", text)


class spelt:  # noqa: N801  # A block's name, as `suppress` is.
    """Name settings by this spelling in errors made within the block.

    If fronts are nested, the spelling of the outermost one counts: users see its names. A thread
    that is made within the block needs `daemon`. It is no generator, as each `poll` passes one;
    `send` passes one only where it may wait or refuse.
    """

    __slots__ = ("_spelling", "_token")

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling

    def __enter__(self) -> None:
        self._token = _current.set(_current.get() or self._spelling)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def daemon(target: Callable[[], object], name: str) -> BackgroundThread:
    """Return a daemon thread whose errors and warnings name settings as this thread's do."""
    return BackgroundThread(target=copy_context().run, args=[target], name=name, daemon=True)
