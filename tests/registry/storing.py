"""Answers of a registry that stores schemas as they come, such as Confluent's."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.registry.server import Asked, Reply, error


@dataclass
class Storing:
    """Schemas by subject, for `TestRegistry.answer`. Equal schemas have one id."""

    subjects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    by_id: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Reply:
        parts = [unquote(each) for each in urlsplit(asked.path).path.split("/")[1:]]
        match asked.method, *parts:
            case "POST", "subjects", subject, "versions":
                return self._version(subject, self._registered(subject, asked.json))
            case "POST", "subjects", subject:
                found = self.subjects.get(subject, [])
                schema = _stored(asked.json)
                return self._version(subject, found.index(schema)) if schema in found else _NONE
            case "GET", "subjects", subject, "versions", version if subject in self.subjects:
                known = self.subjects[subject]
                return self._version(
                    subject, (len(known) if version == "latest" else int(version)) - 1
                )
            case "GET", "schemas", "ids", id if int(id) <= len(self.by_id):
                return Reply(json=self.by_id[int(id) - 1])
        return _NONE

    def _registered(self, subject: str, body: dict[str, Any]) -> int:
        schema, known = _stored(body), self.subjects.setdefault(subject, [])
        if schema not in self.by_id:
            self.by_id.append(schema)
        if schema not in known:
            known.append(schema)
        return known.index(schema)

    def _version(self, subject: str, place: int) -> Reply:
        schema = self.subjects[subject][place]
        id = self.by_id.index(schema) + 1
        return Reply(json={**schema, "subject": subject, "version": place + 1, "id": id})


_NONE = error(404, 40403, "Schema not found")


def _stored(body: dict[str, Any]) -> dict[str, Any]:
    kept = ("schema", "schemaType", "references")
    return {name: each for name, each in body.items() if name in kept and each}
