"""Programs that decode rows: one per schema key, made once. Keys without a program are kept too."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.records.varints import Integers
from spark_kafka_source.registry.errors import RegistryError, SchemaNotFoundError
from spark_kafka_source.registry.framing import Framed, SchemaKey
from spark_kafka_source.registry.schemas import SchemaId
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType, ValueReader

UNKNOWN_SECONDS = 2
"""How long an id stays unknown before it is asked for again. It may be registered by then."""
UNDER_WAY_SECONDS = 300
"""How long answers are kept for rows whose other ids have none yet."""
MOST_UNUSABLE = 100
"""Of one schema. Garbage rows can name any message."""
MOST_KEPT = 1_000

K = TypeVar("K")
V = TypeVar("V")


class SchemaSource(Protocol):
    """Source of schemas. A `RegistryClient` is one."""

    def schema(self, id: SchemaId) -> SchemaText:
        """Return the schema with this id and all schemas that it refers to.

        Raises `SchemaNotFoundError` if there is none, and `SchemaError` if the schema is unusable.
        Any other error says nothing about the schema.
        """


@dataclass(frozen=True, slots=True)
class ShippedSchemas:
    """Source of schemas that are known already. It asks `beyond`, if given, for other schemas."""

    known: Mapping[SchemaId, SchemaText]
    beyond: SchemaSource | None = None
    rules_option: str = ""
    """The option that lets other schemas have rules. If empty, they may have rules."""

    def schema(self, id: SchemaId) -> SchemaText:
        """See `SchemaSource`. Raises `ConfigurationError` for a schema with a rule, too."""
        if id in self.known:
            return self.known[id]
        if self.beyond is None:
            raise SchemaNotFoundError(f"the schema {id} is not among the {len(self.known)} known")
        found = self.beyond.schema(id)
        rule = found.unobeyed_rule()
        if rule and self.rules_option:
            text = f"is not 'ignore', and the schema {id} has the rule {rule}"
            expected = "Set it to 'ignore' if the values may stay as they are: no rule is obeyed"
            raise ConfigurationError(self.rules_option, text, expected)
        return found


@dataclass(frozen=True, slots=True)
class RowPrograms:
    """Programs of some rows, in the form that `ValueReader.decode` takes.

    `program_of` is None if the first program decodes all rows that are not null.
    """

    programs: tuple[Any, ...]
    program_of: Integers | None
    _framed: Framed = field(repr=False)
    _reasons: Mapping[int, str] = field(repr=False)

    def key(self, row: int) -> SchemaKey | None:
        """Return the key of the schema that wrote the row, or None if it is unknown."""
        number = int(self._framed.key_of[row])
        return None if number < 0 else self._framed.keys[number]

    def reason(self, row: int) -> str:
        """Return why a row that is not null has no program."""
        number = int(self._framed.key_of[row])
        return self._framed.reason(row) if number < 0 else self._reasons[number]


class WriterPrograms:
    """Programs of one reader, for the lifetime of a task.

    The programs remember a missing schema for `UNKNOWN_SECONDS`, and an unusable one until the next
    task or until `forget_bad`. For one thread at a time.
    """

    def __init__(
        self,
        reader: ValueReader,
        source: SchemaSource,
        *,
        needs_schemas: bool = True,
        most_unknown: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create them, without a program.

        Without `needs_schemas`, rows of a missing schema are read: it has no rules, either. After
        `most_unknown` missing ids in some rows no other id is looked up for these rows.
        """
        self._reader, self._source, self._needs_schemas = reader, source, needs_schemas
        self._most_unknown, self._clock = most_unknown, clock
        self._programs: OrderedDict[SchemaKey, Any] = OrderedDict()
        # In a dict of their own: keys from garbage rows must not push out good programs.
        self._reasons: OrderedDict[SchemaKey, str] = OrderedDict()
        self._unknown: OrderedDict[SchemaId, tuple[str, float]] = OrderedDict()
        # Missing ids of rows whose other ids have no answer yet, by the keys of the rows.
        self._under_way: OrderedDict[tuple[SchemaKey, ...], tuple[dict[SchemaId, str], float]]
        self._under_way = OrderedDict()
        self._unusable: dict[SchemaId, int] = {}

    def of(self, framed: Framed) -> RowPrograms:
        """Return the programs of these rows.

        Raises errors that prevent the lookup of a schema, such as `RegistryUnavailableError`.
        """
        programs: list[Any] = []
        reasons: dict[int, str] = {}
        number_of: list[int] = []
        for number, found in enumerate(self._found(framed.keys)):
            if isinstance(found, _Bad):
                reasons[number] = found.reason
                number_of.append(-1)
            else:
                number_of.append(len(programs))
                programs.append(found)
        if len(programs) == 1 == len(framed.keys) and not framed.status.any():
            return RowPrograms(tuple(programs), None, framed, reasons)
        # The last entry is for index -1, which rows without a key have.
        program_of = np.array([*number_of, -1])[framed.key_of]
        return RowPrograms(tuple(programs), program_of, framed, reasons)

    def forget_bad(self) -> None:
        """Forget the missing and unusable schemas, so that they are looked up again."""
        for each in (self._reasons, self._unknown, self._unusable):
            each.clear()

    def _found(self, keys: tuple[SchemaKey, ...]) -> list[Any]:
        """Return a program or `_Bad` for each key."""
        unknown, until = self._under_way.pop(keys, ({}, 0.0))
        if self._clock() >= until:
            unknown = {}
        try:
            return [self._find(key, unknown) for key in keys]
        except RegistryError:
            raise
        except Exception:
            # A source that does not wait has the next answer later, and is asked for the same keys
            # again. If the first answers were too old by then, many unknown ids would have no end.
            until = self._clock() + UNDER_WAY_SECONDS
            _keep(self._under_way, keys, (unknown, until))
            raise

    def _find(self, key: SchemaKey, unknown: dict[SchemaId, str]) -> Any:
        """Return a program, or `_Bad`. `unknown` are the missing ids of the same rows."""
        if key in self._programs:
            self._programs.move_to_end(key)
            return self._programs[key]
        if key in self._reasons:
            return _Bad(self._reasons[key])
        reason, until = self._unknown.get(key.id, ("", 0.0))
        if self._clock() < until:
            unknown.setdefault(key.id, reason)
        if key.id in unknown:
            return self._missing(unknown[key.id])
        if self._most_unknown is not None and len(unknown) >= self._most_unknown:
            return _Bad(f"the schema {key.id} is not looked for, after {len(unknown)} unknown ones")
        try:
            found = self._make(key)
        except SchemaNotFoundError as error:
            unknown[key.id] = reason = f"{error.where} has no schema {key.id}"
            self._unknown.pop(key.id, None)
            _keep(self._unknown, key.id, (reason, self._clock() + UNKNOWN_SECONDS))
            return self._missing(reason)
        if isinstance(found, _Bad):
            _keep(self._reasons, key, found.reason)
        else:
            _keep(self._programs, key, found)
        return found

    def _make(self, key: SchemaKey) -> Any:
        id = key.id
        if self._unusable.get(id, 0) >= MOST_UNUSABLE:
            return _Bad(f"the schema {id}, after {MOST_UNUSABLE} of its messages were of no use")
        try:
            return self._reader.program(self._source.schema(id), key.message)
        except SchemaError as error:
            self._unusable[id] = self._unusable.get(id, 0) + 1
            return _Bad(f"schema {id}: {error}")

    def _missing(self, reason: str) -> Any:
        if self._needs_schemas:
            return _Bad(reason)
        return self._reader.program(SchemaText(SchemaType.JSON, ""))


@dataclass(frozen=True, slots=True)
class _Bad:
    reason: str


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)
