"""Validation of JSON texts by a JSON Schema, with `jsonschema`.

It looks at all keywords of the schema's draft, which is 2020-12 without `$schema`. Formats are not
looked at, as the drafts say. `multipleOf` is exact: 19.99 is a multiple of 0.01, as the texts say.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Any, NamedTuple

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.fitting import below
from spark_kafka_source.values.json.documents import INSTALL, Documents
from spark_kafka_source.values.schema_text import SchemaText

_PACKAGE = "jsonschema"
_MOST_SHOWN = 200


class Invalid(NamedTuple):
    """The path of a value that is not valid, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True)
class Validation:
    """Validator of texts by one schema. It is pickled as the schema."""

    schema: SchemaText

    def __reduce__(self) -> tuple[Any, ...]:
        return Validation, (self.schema,)

    def check(self) -> None:
        """Raise `ConfigurationError` without the package, and `SchemaError` for a wrong schema."""
        if find_spec(_PACKAGE) is None:
            found = f"validation needs the package '{_PACKAGE}', which is not here"
            raise ConfigurationError("value.validate", found, INSTALL)
        _ = self._validator

    def invalid(self, text: bytes) -> Invalid | None:
        """Return what is wrong with a text, or None. Raises `ConfigurationError` as `check` does.

        It raises one, too, for a `$ref` that leads nowhere.
        """
        try:
            value = json.loads(text)
            failure = self._best_match(self._validator.iter_errors(value))
        except ValueError:
            return Invalid("", "not JSON")
        except RecursionError:
            return Invalid("", "values nested too deeply")
        except import_module("referencing.exceptions").Unresolvable as error:
            shown = f"is 'true', and a $ref of the schema leads nowhere: {error}"[:_MOST_SHOWN]
            expected = "Give it as a reference of the schema"
            raise ConfigurationError("value.validate", shown, expected) from None
        if failure is None:
            return None
        return Invalid(_path(failure.absolute_path), str(failure.message)[:_MOST_SHOWN])

    def _best_match(self, errors: Iterable[Any]) -> Any:
        return import_module("jsonschema.exceptions").best_match(errors)

    @cached_property
    def _validator(self) -> Any:
        package = import_module(_PACKAGE)
        documents = Documents.of(self.schema)
        draft = package.validators.validator_for(documents.root, package.Draft202012Validator)
        try:
            draft.check_schema(documents.root)
        except package.SchemaError as error:
            path = _path(error.absolute_path)
            found = f"it is no schema by {draft.META_SCHEMA.get('$schema', 'its draft')}: "
            found += str(error.message)[:_MOST_SHOWN]
            raise SchemaError(path, found, "Mend it, or name its draft by $schema") from None
        return _exact(draft)(documents.root, registry=documents.registry)


@cache
def _exact(draft: Any) -> Any:
    """Return the validator of a draft with an exact `multipleOf`."""
    names = [each for each in ("multipleOf", "divisibleBy") if each in draft.VALIDATORS]
    if all(draft.VALIDATORS[name] is _multiple_of for name in names):
        return draft
    validators = import_module("jsonschema.validators")
    found = validators.extend(draft, dict.fromkeys(names, _multiple_of))
    plain = found.evolve

    def evolve(self: Any, **changes: Any) -> Any:
        # Where a schema has $schema, it is the validator of that draft.
        other = plain(self, **changes)
        kind: Any = type(other)
        exact = _exact(kind)
        if exact is kind:
            return other
        fields = (each for each in exact.__attrs_attrs__ if each.init)
        return exact(**{field.alias: getattr(other, field.name) for field in fields})

    found.evolve = evolve
    return found


def _multiple_of(validator: Any, of: Any, value: Any, schema: Any) -> Iterator[Any]:
    """Yield an error for a number that is no multiple, by the shortest texts of both numbers."""
    if not validator.is_type(value, "number"):
        return
    is_finite = all(isinstance(each, int) or isfinite(each) for each in (value, of))
    if not is_finite or (_fraction(value) / _fraction(of)).denominator != 1:
        error = import_module(_PACKAGE).ValidationError
        yield error(f"{value!r} is not a multiple of {of}")


def _fraction(number: float) -> Fraction:
    return Fraction(number if isinstance(number, int) else repr(number))


def _path(parts: Iterable[str | int]) -> str:
    """Return a path such as `lines[0].price`."""
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else below(path, part)
    return path
