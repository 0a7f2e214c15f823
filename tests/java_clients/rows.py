"""The rows of a matrix: what Kafka's Java client has, method by method and setting by setting."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from spark_kafka_source.client.arguments import Vocabulary
from tests.marks import Marks

ROOT = Path(__file__).parents[2]


class Verdict(StrEnum):
    """What became of it."""

    HERE = "here"
    BETTER = "here and better"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Method:
    """`ours` is a method with its parameters, or an attribute; `why` says what is different."""

    verdict: Verdict
    ours: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """`default` is ours where it is not Java's."""

    verdict: Verdict
    why: str = ""
    default: str | None = None


@dataclass(frozen=True, slots=True)
class JavaClient:
    """One of Kafka's clients beside ours.

    `methods` are by Java's class and the name of the method, whatever its overloads; `classes` are
    ours by Java's. Methods of `main_class` need no class in the tables. `read` makes a
    configuration of arguments; `configs` are ours that declare settings, `defaults` those of
    settings that none of these has. `arguments` are settings of Java's that are arguments of their
    own here. A parameter of a method in `one_for_two` is one for two of Java's.
    """

    kind: str
    main_class: str
    methods: Mapping[str, Mapping[str, Method]]
    settings: Mapping[str, Setting]
    classes: Mapping[str, Any]
    configs: tuple[type[Any], ...]
    read: Callable[[Mapping[str, object]], object]
    vocabulary: Vocabulary
    page: Path
    arguments: frozenset[str]
    defaults: Mapping[str, object]
    one_for_two: frozenset[str] = frozenset()

    @property
    def marks(self) -> Marks:
        """Between them its tables stand in the page."""
        begin = f"<!-- {self.kind}: written by make java-clients -->"
        return Marks(begin, f"<!-- end of {self.kind} -->")


def here(ours: str, why: str = "") -> Method:
    """It is here, under this name and with these parameters."""
    return Method(Verdict.HERE, ours, why)


def better(ours: str, why: str) -> Method:
    """It is here, and does more."""
    return Method(Verdict.BETTER, ours, why)


def left_out(why: str) -> Method:
    """It is not here."""
    return Method(Verdict.LEFT_OUT, why=why)
