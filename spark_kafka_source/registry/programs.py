"""Programs that decode rows: one per schema key, made once. Keys without a program are kept too."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from spark_kafka_source.records.varints import Integers
from spark_kafka_source.registry.errors import SchemaNotFoundError
from spark_kafka_source.registry.framing import Framed, SchemaKey
from spark_kafka_source.registry.schemas import SchemaId
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType, ValueReader

MOST_UNKNOWN = 100
"""After this many unknown ids, no more ids are looked up: garbage rows can hold any number."""
MOST_KEPT = 1_000


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
        """See `SchemaSource`."""
        if id in self.known:
            return self.known[id]
        if self.beyond is None:
            raise SchemaNotFoundError(f"the schema {id} is not among the {len(self.known)} known")
        found = self.beyond.schema(id)
        rule = found.unobeyed_rule()
        if rule and self.rules_option:
            expected = f"'{self.rules_option}' set to 'ignore' leaves the values as they are"
            raise SchemaError("", f"the rule {rule}, which is not obeyed here", expected)
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

    The programs remember a schema that is missing or unusable. Its rows are bad until the next task
    or until `forget_bad`. After `MOST_UNKNOWN` missing ids no other id is looked up. For one thread
    at a time.
    """

    def __init__(
        self, reader: ValueReader, source: SchemaSource, *, needs_schemas: bool = True
    ) -> None:
        """Without `needs_schemas`, rows of a missing schema are read: it has no rules, either."""
        self._reader, self._source, self._needs_schemas = reader, source, needs_schemas
        self._programs: OrderedDict[SchemaKey, Any] = OrderedDict()
        # In a dict of their own: keys from garbage rows must not push out good programs.
        self._reasons: OrderedDict[SchemaKey, str] = OrderedDict()
        self._there: set[SchemaId] = set()
        self._unknown: dict[SchemaId, str] = {}
        self._unusable: dict[SchemaId, int] = {}

    def of(self, framed: Framed) -> RowPrograms:
        """Return the programs of these rows.

        Raises errors that prevent the lookup of a schema, such as `RegistryUnavailableError`.
        """
        programs: list[Any] = []
        reasons: dict[int, str] = {}
        number_of: list[int] = []
        for number, key in enumerate(framed.keys):
            found = self._find(key)
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

    def _find(self, key: SchemaKey) -> Any:
        """Return a program, or `_Bad`."""
        if key in self._programs:
            self._programs.move_to_end(key)
            return self._programs[key]
        if key in self._reasons:
            return _Bad(self._reasons[key])
        found = self._make(key)
        if isinstance(found, _Bad):
            _keep(self._reasons, key, found.reason)
        else:
            _keep(self._programs, key, found)
        return found

    def _make(self, key: SchemaKey) -> Any:
        id = key.id
        if id in self._unknown:
            return self._missing(id)
        if id not in self._there and len(self._unknown) >= MOST_UNKNOWN:
            return _Bad(f"the schema {id} is not looked for, after {MOST_UNKNOWN} unknown ones")
        if self._unusable.get(id, 0) >= MOST_UNKNOWN:
            return _Bad(f"the schema {id}, after {MOST_UNKNOWN} of its messages were of no use")
        try:
            writer = self._source.schema(id)
            self._there.add(id)
            return self._reader.program(writer, key.message)
        except SchemaNotFoundError:
            self._unknown[id] = f"the registry has no schema {id}"
            return self._missing(id)
        except SchemaError as error:
            self._there.add(id)
            self._unusable[id] = self._unusable.get(id, 0) + 1
            return _Bad(f"schema {id}: {error}")

    def _missing(self, id: SchemaId) -> Any:
        if self._needs_schemas:
            return _Bad(self._unknown[id])
        return self._reader.program(SchemaText(SchemaType.JSON, ""))


@dataclass(frozen=True, slots=True)
class _Bad:
    reason: str


def _keep(kept: OrderedDict[SchemaKey, Any], key: SchemaKey, value: Any) -> None:
    kept[key] = value
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)
