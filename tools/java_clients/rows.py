"""The rows of a matrix: all methods and settings of a Kafka Java client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from spark_kafka_source.client.arguments import Vocabulary
from tools.marks import Marks

ROOT = Path(__file__).parents[2]


class Verdict(StrEnum):
    """Our state of a method or setting."""

    HERE = "here"
    BETTER = "here and better"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Method:
    """A method. `ours` is our method with parameters, or an attribute. `why` is the difference."""

    verdict: Verdict
    ours: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. `default` is our default if it differs from Java's."""

    verdict: Verdict
    why: str = ""
    default: str | None = None


@dataclass(frozen=True, slots=True)
class JavaClient:
    """One of Kafka's clients, compared with ours.

    `methods` are by Java's class and method name, with all overloads as one. `classes` are our
    classes by Java's. The tables name no class for methods of `main_class`. `read` creates a
    configuration from arguments. `arguments` are Java's settings that are separate arguments here.
    A method in `one_for_two` has one parameter in place of two in Java.
    """

    kind: str
    main_class: str
    methods: Mapping[str, Mapping[str, Method]]
    settings: Mapping[str, Setting]
    classes: Mapping[str, Any]
    read: Callable[[Mapping[str, object]], object]
    vocabulary: Vocabulary
    page: Path
    arguments: frozenset[str]
    one_for_two: frozenset[str] = frozenset()

    @property
    def marks(self) -> Marks:
        """Return the marks around the client's tables in its page."""
        begin = f"<!-- {self.kind}: written by make java-clients -->"
        return Marks(begin, f"<!-- end of {self.kind} -->")


def here(ours: str, why: str = "") -> Method:
    """Return the row of a method that we have, with our name and parameters."""
    return Method(Verdict.HERE, ours, why)


def better(ours: str, why: str) -> Method:
    """Return the row of a method that does more here."""
    return Method(Verdict.BETTER, ours, why)


def left_out(why: str) -> Method:
    """Return the row of a method that we lack."""
    return Method(Verdict.LEFT_OUT, why=why)
