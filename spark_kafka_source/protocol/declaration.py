"""How a message is declared: a dataclass whose fields carry a wire type and their versions.

The terms are those of Kafka's own definitions,
https://github.com/apache/kafka/tree/trunk/clients/src/main/resources/common/message.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, Generic, TypeVar, get_args

from spark_kafka_source.protocol.wire import Primitive

_NEWEST = 0x7FFF
_BY_TYPE = object()


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included; prints as Kafka writes it: `0-3`, `3+`, `none`."""

    lowest: int
    highest: int

    @staticmethod
    @cache
    def parse(text: str) -> "Versions":
        """The range that a declaration writes as `0-3`, `3+`, `7` or `none`."""
        if text == "none":
            return Versions(0, -1)
        lowest, _, highest = text.removesuffix("+").partition("-")
        return Versions(int(lowest), _NEWEST if text.endswith("+") else int(highest or lowest))

    def common(self, other: "Versions") -> "Versions":
        """The versions that are in both."""
        return Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.highest == _NEWEST:
            return f"{self.lowest}+"
        return f"{self.lowest}-{self.highest}" if self.lowest < self.highest else str(self.lowest)


@dataclass(frozen=True, slots=True)
class Array:
    """A count, and then so many elements; see `array`."""

    element: "Kind"


Kind = Primitive | Array | type
"""What a field can be: a primitive, an array, or a nested struct (a dataclass of such fields)."""


def array(element: Kind) -> Array:
    """The type of a list of `element`."""
    return Array(element)


@dataclass(frozen=True, slots=True)
class WireField:
    """One field of a declaration. `default` makes a new default value at each call."""

    name: str
    kind: Kind
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    ignorable: bool
    default: Callable[[], Any]


def wire(
    kind: Kind,
    versions: str,
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str = "none",
    default: Any = _BY_TYPE,
    ignorable: bool = False,
    secret: bool = False,
) -> Any:
    """Declares the field of a message, as `key: str = wire(STRING, "0-3")`.

    `versions` carry the field, `nullable` among them may carry None, and `tagged` carry it under
    `tag`. `ignorable`: a version without the field drops its value, whatever it is, instead of
    refusing it. A `secret` is in no repr. The default is the type's own (0, "", [], an all-default
    struct), unless given.
    """
    declared = partial(
        WireField,
        kind=kind,
        versions=Versions.parse(versions),
        nullable=Versions.parse(nullable),
        tag=tag,
        tagged=Versions.parse(tagged),
        ignorable=ignorable,
    )
    initial = _initial(kind) if default is _BY_TYPE else {"default": default}
    return dataclasses.field(**initial, repr=not secret, metadata={"wire": declared})


def _initial(kind: Kind) -> dict[str, Any]:
    if isinstance(kind, Array):
        return {"default_factory": list}
    if isinstance(kind, type):
        return {"default_factory": kind}
    return {"default": kind.default}


def wire_fields(struct: type) -> tuple[WireField, ...]:
    """The fields of a message or nested struct, in the order in which they are declared."""
    return tuple(
        field.metadata["wire"](name=field.name, default=_default(field))
        for field in dataclasses.fields(struct)
    )


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return lambda: field.default


class Message:
    """What is encoded on its own: a request, a response, or the header of either."""

    __slots__ = ()

    VERSIONS: ClassVar[str]
    FLEXIBLE: ClassVar[str]


def versions(message_type: type[Message]) -> Versions:
    """The versions of a message that this package speaks."""
    return Versions.parse(message_type.VERSIONS)


def is_flexible(message_type: type[Message], version: int) -> bool:
    """Whether this version has compact lengths and tagged fields (KIP-482)."""
    return version in Versions.parse(message_type.FLEXIBLE)


class Response(Message):
    """What a broker answers. `KEY`, `VERSIONS` and `FLEXIBLE` are those of its request."""

    __slots__ = ()

    KEY: ClassVar[int]


R_co = TypeVar("R_co", bound=Response, covariant=True)


class Request(Message, Generic[R_co]):
    """What a broker is asked; `FetchRequest(Request[FetchResponse])` names its answer's type."""

    __slots__ = ()

    KEY: ClassVar[int]
    RESPONSE: ClassVar[type[Response]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        (cls.RESPONSE,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]  # PEP 560
