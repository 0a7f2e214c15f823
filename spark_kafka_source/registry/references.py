"""Lookup of the schemas that a schema refers to, directly and indirectly, within limits."""

from collections.abc import Callable

from spark_kafka_source.registry.errors import SchemaNotFoundError
from spark_kafka_source.registry.schemas import SchemaReference, StoredSchema
from spark_kafka_source.values import SchemaError, SchemaText

MOST_REFERENCES = 500
MOST_DEPTH = 32
MOST_CHARACTERS = 16 << 20
"""The most characters in all the texts that one schema refers to."""

Find = Callable[[SchemaReference], StoredSchema]


def with_references(schema: StoredSchema, find: Find) -> SchemaText:
    """Return the schema and all schemas that it refers to. Each stands behind its own references.

    Raises `SchemaError` for a circle, a missing schema, and references beyond the limits. Also
    raises the errors of `find`.
    """
    referred = _ReferredTexts(find)
    referred.add(schema, ())
    return SchemaText(schema.type, schema.text, tuple(referred.texts.items()), schema.rules)


class _ReferredTexts:
    def __init__(self, find: Find) -> None:
        self._find = find
        self.texts: dict[str, str] = {}

    def add(self, schema: StoredSchema, above: tuple[SchemaReference, ...]) -> None:
        for reference in schema.references:
            # As in Confluent's client, names identify schemas: the first schema of a name counts.
            if reference.name not in self.texts:
                self._add(reference, (*above, reference))

    def _add(self, reference: SchemaReference, path: tuple[SchemaReference, ...]) -> None:
        if reference.name in {above.name for above in path[:-1]}:
            raise _refused(path, "refers to itself", "Register it without a circle")
        if len(path) > MOST_DEPTH:
            raise _refused(path, f"is more than {MOST_DEPTH} references deep", "Use fewer")
        try:
            schema = self._find(reference)
        except SchemaNotFoundError as error:
            raise _refused(path, f"is not there: {error}", "Register it again") from error
        self.add(schema, path)
        self.texts[reference.name] = schema.text
        characters = sum(map(len, self.texts.values()))
        if len(self.texts) > MOST_REFERENCES or characters > MOST_CHARACTERS:
            limits = f"{MOST_REFERENCES} schemas or {MOST_CHARACTERS} characters"
            raise _refused(path[:1], f"leads to more than {limits}", "Use fewer")


def _refused(path: tuple[SchemaReference, ...], found: str, expected: str) -> SchemaError:
    steps = [
        f"{reference.name} ({reference.subject} version {reference.version})"[:100]
        for reference in path
    ]
    if len(steps) > 4:
        steps = [*steps[:2], "...", *steps[-2:]]
    return SchemaError(" -> ".join(steps), f"the reference {found}", expected)
