"""Declaration of messages: a dataclass whose fields carry a wire type and their versions.

The terms are those of Kafka's own definitions,
https://github.com/apache/kafka/tree/trunk/clients/src/main/resources/common/message.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, dataclass_transform, get_args

from spark_kafka_source.protocol.wire import Primitive

T = TypeVar("T")

_NEWEST = 0x7FFF
_BY_TYPE = object()


@dataclass(frozen=True, slots=True)
class Versions:
    """Range of versions, both ends included.

    Its text is as Kafka writes it: `0-3`, `3+`, `none`.
    """

    lowest: int
    highest: int

    @staticmethod
    @cache
    def parse(text: str) -> "Versions":
        """Parse a range from a declaration: `0-3`, `3+`, `7` or `none`."""
        if text == "none":
            return Versions(0, -1)
        lowest, _, highest = text.removesuffix("+").partition("-")
        return Versions(int(lowest), _NEWEST if text.endswith("+") else int(highest or lowest))

    def common(self, other: "Versions") -> "Versions":
        """Return the versions that are in both ranges."""
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
    """Wire type of a list: a count, then that many elements. See `array`."""

    element: "Kind"


Kind = Primitive | Array | type
"""Wire type of a field: a primitive, an array, or a nested struct (a dataclass of fields)."""


@dataclass_transform()
def message(declared: type[T]) -> type[T]:
    """Make a class a dataclass with slots, whose methods are compiled at their first use.

    A process uses few of the many messages, and Python compiles for a third of a millisecond for
    each.
    """
    made = dataclass(slots=True, init=False, repr=False, eq=False)(declared)
    for name in _COMPILED:
        setattr(made, name, _compiling(made, name))
    made.__hash__ = None  # type: ignore[assignment]  # As that of each class with `__eq__`.
    return made


_COMPILED = ("__init__", "__repr__", "__eq__")


def _compiling(made: type, name: str) -> Callable[..., Any]:
    """Return a method that compiles all three methods of a message, and then acts as its own."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        fields = dataclasses.fields(made)
        twin = dataclasses.make_dataclass(
            made.__name__, [(field.name, field.type, field) for field in fields]
        )
        for compiled in _COMPILED:
            setattr(made, compiled, getattr(twin, compiled))
        return getattr(twin, name)(self, *args, **kwargs)

    return method


def array(element: Kind) -> Array:
    """Return the wire type of a list of `element`."""
    return Array(element)


@dataclass(frozen=True, slots=True)
class WireField:
    """Field of a declaration. `default` makes a new default value at each call."""

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
    """Declare a field of a message, such as `key: str = wire(STRING, "0-3")`.

    `versions` have the field. In the versions `nullable` it may be None. In the versions `tagged`
    it is a tagged field with the number `tag`. If `ignorable`, a version without the field drops
    any value; otherwise such a version refuses a value that is set. A `secret` is not in the repr.
    The default is the default of the type (0, "", [], a struct of defaults), unless given.
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
    """Return the fields of a message or nested struct, in their declared order."""
    return tuple(
        field.metadata["wire"](name=field.name, default=_default(field))
        for field in dataclasses.fields(struct)
    )


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return lambda: field.default


class Message:
    """Unit that is encoded on its own: a request, a response, or the header of either."""

    __slots__ = ()

    VERSIONS: ClassVar[str]
    FLEXIBLE: ClassVar[str]


def versions(message_type: type[Message]) -> Versions:
    """Return the versions of a message that this package supports."""
    return Versions.parse(message_type.VERSIONS)


def is_flexible(message_type: type[Message], version: int) -> bool:
    """Whether this version has compact lengths and tagged fields (KIP-482)."""
    return version in Versions.parse(message_type.FLEXIBLE)


class Response(Message):
    """Response of a broker. Its request gives it `KEY`, `VERSIONS` and `FLEXIBLE`."""

    __slots__ = ()

    KEY: ClassVar[int]


R_co = TypeVar("R_co", bound=Response, covariant=True)


class Need(NamedTuple):
    """The lowest version that has what a request asks for, and the first Kafka that has it."""

    version: int
    what: str
    kafka: str


class Request(Message, Generic[R_co]):
    """Request to a broker. `FetchRequest(Request[FetchResponse])` names the response type."""

    __slots__ = ()

    KEY: ClassVar[int]
    RESPONSE: ClassVar[type[Response]]

    @property
    def expects_answer(self) -> bool:
        """Whether a broker answers."""
        return True

    def need(self) -> Need | None:
        """Return what a broker needs if older ones would take a value to mean something else.

        A field that a version lacks is no such need: the codec refuses it.
        """
        return None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        (response,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]  # PEP 560
        response.KEY, response.VERSIONS, response.FLEXIBLE = cls.KEY, cls.VERSIONS, cls.FLEXIBLE
        cls.RESPONSE = response
