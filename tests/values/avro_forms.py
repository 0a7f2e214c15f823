"""Drawn Avro values in several forms, for judges that take one of them."""

import json
import math
from decimal import Context, Decimal
from random import Random
from typing import Any

import numpy as np

from tests.values.avro_fit_oracle import (
    NoValueError,
    Oracle,
    avro,
    branch_name,
    logical_of,
    members,
    named,
)
from tests.values.avro_pairs import column, names_of, record_of, schema_of, value_of
from tests.values.test_avro_fit import reading_type

_ROWS = 3
_WIDE = Context(prec=60)


def drawn_rows(seed: int) -> tuple[Any, Any, list[Any]]:
    """Draw a schema, a column of the type it is read into, and the values as fastavro has them."""
    random = Random(seed)
    schema = schema_of(random) if random.randint(0, 3) else record_of(random)
    # No column has 40 digits.
    schema = json.loads(json.dumps(schema).replace('"precision": 40', '"precision": 38'))
    kind, oracle = reading_type(schema), Oracle(schema)
    rows, values = [], []
    for _ in range(_ROWS):
        row = value_of(random, kind)
        try:
            values.append(oracle.wanted(schema, kind, row))
            rows.append(row)
        except NoValueError:
            pass
    return schema, column(kind, rows) if rows else None, values


class Forms:
    """One value in several forms: as fastavro writes it, in Avro's JSON, in our columns."""

    def __init__(self, schema: Any) -> None:
        self._known = names_of(schema)

    def finite(self, value: Any) -> Any:
        """Return the value without what JSON has no number for."""
        if isinstance(value, dict):
            return {name: self.finite(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.finite(each) for each in value]
        if isinstance(value, tuple):
            return value[0], self.finite(value[1])
        return 2.5 if isinstance(value, float) and not math.isfinite(value) else value

    def json(self, schema: Any, value: Any) -> Any:
        schema = named(schema, self._known)
        if isinstance(schema, list):
            return (
                None
                if value is None
                else {value[0]: self.json(self._branch(schema, value[0]), value[1])}
            )
        match avro(schema):
            case "record":
                return {
                    each["name"]: self.json(each["type"], value[each["name"]])
                    for each in schema["fields"]
                }
            case "array":
                return [self.json(schema["items"], each) for each in value]
            case "map":
                return {name: self.json(schema["values"], each) for name, each in value.items()}
            case "bytes" | "fixed":
                return value.decode("latin-1")
        return value

    def of_json(self, schema: Any, value: Any) -> Any:
        schema = named(schema, self._known)
        if isinstance(schema, list):
            if value is None:
                return None
            ((name, inner),) = value.items()
            return name, self.of_json(self._branch(schema, name), inner)
        match avro(schema):
            case "record":
                return {
                    each["name"]: self.of_json(each["type"], value[each["name"]])
                    for each in schema["fields"]
                }
            case "array":
                return [self.of_json(schema["items"], each) for each in value]
            case "map":
                return {name: self.of_json(schema["values"], each) for name, each in value.items()}
            case "bytes" | "fixed":
                return value.encode("latin-1")
            case "double":
                return float(value)
            case "float":
                return float(np.float32(value))
        return value

    def column(self, schema: Any, value: Any) -> Any:
        """Return the value as `plain` gives it."""
        schema = named(schema, self._known)
        if isinstance(schema, list):
            return self._member(schema, value)
        match avro(schema):
            case "record":
                return {
                    each["name"]: self.column(each["type"], value[each["name"]])
                    for each in schema["fields"]
                }
            case "array":
                return [self.column(schema["items"], each) for each in value]
            case "map":
                return {name: self.column(schema["values"], each) for name, each in value.items()}
        name = logical_of(schema)
        if name == "decimal":
            return Decimal(int.from_bytes(value, signed=True)).scaleb(-schema["scale"], _WIDE)
        if isinstance(value, float):
            return repr(value)
        return value * 1_000 if name and name.endswith("timestamp-millis") else value

    def _member(self, union: Any, value: Any) -> Any:
        found = members(union)
        if value is None:
            return None
        if len(found) == 1:
            return self.column(found[0], value[1])
        return {
            f"member{place}": self.column(each, value[1])
            if branch_name(each, self._known) == value[0]
            else None
            for place, each in enumerate(found)
        }

    def _branch(self, union: Any, name: str) -> Any:
        return next(each for each in union if branch_name(each, self._known) == name)
