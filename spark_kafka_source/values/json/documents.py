"""Documents of a JSON Schema, and its references between them by URI (RFC 3986).

The documents are the schema itself and the references that a registry has with it. A document goes
by its name in the registry and by its `$id`, also relative to the URI of another document. The
package `referencing`, by the authors of `jsonschema`, resolves references: pointers, anchors, and
the `$id`s of parts of a document. Nothing is ever fetched.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urljoin

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.values.errors import SchemaError, quoted
from spark_kafka_source.values.schema_text import SchemaText

MAX_REFERENCES = 1000
INSTALL = install_extra("json")

_RESOLVER = "referencing"
_BASES = ("$id", "id", "$schema")
"""The keywords of a node that change how its references are resolved."""
_DYNAMIC = ('"$dynamicAnchor"', '"$recursiveAnchor"')
_ALONE = frozenset({"draft-03", "draft-04", "draft-06", "draft-07"})
"""The drafts in which nothing beside a `$ref` counts."""


class LeadsNowhereError(Exception):
    """A reference has no target."""


@dataclass(frozen=True, slots=True)
class Documents:
    """All documents, indexed for references."""

    root: Any
    others: Mapping[str, Any]
    """The references of the schema, by their names."""
    uris: Mapping[int, str]
    """The URI of each document, by the identity of its contents."""
    registry: Any
    """A `referencing.Registry`. None without the package."""
    is_dynamic: bool
    """Whether several anchors are dynamic: then their targets depend on the way to them."""

    @classmethod
    def of(cls, schema: SchemaText) -> "Documents":
        """Parse a schema and its references.

        Raises `SchemaError` for a document that is not JSON, and for too many references.
        """
        if len(schema.references) > MAX_REFERENCES:
            found = f"{len(schema.references)} references"
            raise SchemaError("", found, f"Use at most {MAX_REFERENCES}")
        root = _parsed(schema.text, "")
        others = {name: _parsed(text, name) for name, text in schema.references}
        texts = (schema.text, *(text for _, text in schema.references))
        is_dynamic = sum(text.count(keyword) for text in texts for keyword in _DYNAMIC) > 1
        if find_spec(_RESOLVER) is None:
            return cls(root, others, {}, None, is_dynamic)
        try:
            return cls(root, others, *_indexed(root, others), is_dynamic)
        # Documents that are no schemas make the package raise these.
        except (AttributeError, TypeError, ValueError):
            expected = "The texts of both are URIs"
            raise SchemaError("", "an $id or $schema that is no URI", expected) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The names and the URIs of the references."""
        uris = (self.uris.get(id(each), "") for each in self.others.values())
        return tuple(dict.fromkeys([*self.others, *filter(None, uris)]))

    @property
    def scope(self) -> "Scope":
        """The scope of the root."""
        if self.registry is None:
            return Scope(self, None, None)
        resolver = self.registry.resolver(self.uris[id(self.root)])
        return Scope(self, resolver, lenient().detect(self.root))


@dataclass(frozen=True, slots=True)
class Scope:
    """Surroundings of a node: the base URI of its references, and its draft."""

    documents: Documents
    resolver: Any
    """A `referencing.Resolver`. None without the package."""
    draft: Any
    """A `referencing.Specification`. None without the package."""

    def at(self, node: Any) -> "Scope":
        """Return the scope of a node below. It may have an `$id` and a draft of its own."""
        if self.resolver is None or not isinstance(node, dict):
            return self
        if not any(keyword in node for keyword in _BASES):
            return self
        try:
            draft = self.draft.detect(node)
            resolver = self.resolver.in_subresource(draft.create_resource(node))
        except (AttributeError, TypeError, ValueError):
            return self
        return Scope(self.documents, resolver, draft)

    @property
    def takes_references_alone(self) -> bool:
        """Whether nothing beside a `$ref` counts, as in the drafts up to 7."""
        return self.draft is not None and self.draft.name in _ALONE

    def target(self, reference: str) -> "tuple[Any, Scope]":
        """Return the node that a reference leads to, and its scope.

        Raises `LeadsNowhereError`, and `ConfigurationError` without the package.
        """
        if self.resolver is None:
            found = f"a $ref of a JSON Schema needs the package '{_RESOLVER}', which is not here"
            raise ConfigurationError("value.schema", found, INSTALL)
        unresolvable = import_module("referencing.exceptions").Unresolvable
        try:
            return self._target(reference)
        # Documents that are no schemas make the package raise the last four.
        except (unresolvable, LookupError, AttributeError, TypeError, ValueError):
            raise LeadsNowhereError from None

    def _target(self, reference: str) -> "tuple[Any, Scope]":
        uri, _, fragment = reference.partition("#")
        draft = self.draft
        if uri:
            # A document that is found by its name still has the base URI of its `$id`.
            document = self.resolver.lookup(uri).contents
            reference = f"{self.documents.uris.get(id(document), uri)}#{fragment}"
            draft = draft.detect(document)
        resolved = self.resolver.lookup(reference)
        return resolved.contents, Scope(self.documents, resolved.resolver, draft)


def _parsed(text: str, name: str) -> Any:
    """Parse a document. References have a name; the schema itself has an empty one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        found = f"the reference {quoted(name)}" if name else "the schema"
        raise SchemaError("", f"{found} is not JSON", "Give a JSON Schema") from None


def _indexed(root: Any, others: Mapping[str, Any]) -> tuple[Mapping[int, str], Any]:
    """Return the URI of each document, and a registry of all their names and URIs."""
    package = import_module(_RESOLVER)

    def resource(document: Any) -> Any:
        return package.Resource.from_contents(document, default_specification=lenient())

    resources = {name: resource(each) for name, each in others.items()}
    uris = {name: urljoin(name, each.id() or "") for name, each in resources.items()}
    whole = resource(root)
    base = whole.id() or ""
    known = {uris[name]: each for name, each in resources.items()}
    folders = {urljoin(each, ".") for each in (base, *known)}
    for name, each in resources.items():
        known.setdefault(name, each)
        for folder in folders:
            known.setdefault(urljoin(folder, name), each)
    known[base] = whole
    of = {id(each): uris[name] for name, each in others.items()}
    return of | {id(root): base}, package.Registry().with_resources(list(known.items()))


@cache
def lenient() -> Any:
    """Return how a document without `$schema` is read: with the keywords of all drafts."""
    known = import_module("referencing.jsonschema")
    drafts = (known.DRAFT4, known.DRAFT7, known.DRAFT202012)

    def id_of(node: Any) -> Any:
        uri = node.get("$id", node.get("id")) if isinstance(node, dict) else None
        return uri if isinstance(uri, str) and not uri.startswith("#") else None

    def subresources_of(node: Any) -> Iterator[Any]:
        every = [each for draft in drafts for each in draft.subresources_of(node)]
        yield from {id(each): each for each in every if isinstance(each, dict)}.values()

    def anchors_in(_: Any, node: Any) -> Iterator[Any]:
        for draft in drafts:
            yield from draft.anchors_in(node)

    def maybe_in_subresource(segments: Any, resolver: Any, subresource: Any) -> Any:
        inner = (each.maybe_in_subresource(segments, resolver, subresource) for each in drafts)
        return next((each for each in inner if each is not resolver), resolver)

    return import_module(_RESOLVER).Specification(
        name="all drafts",
        id_of=id_of,
        subresources_of=subresources_of,
        maybe_in_subresource=maybe_in_subresource,
        anchors_in=anchors_in,
    )


def known_names(names: Iterable[str]) -> str:
    """Return the names of documents for an error."""
    return ", ".join(map(quoted, names)) or "none"
