"""Client of a schema registry with Confluent's API: finds schemas, and registers schemas.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal
from urllib.parse import quote
from uuid import UUID

from spark_kafka_source.errors import (
    ClosedError,
    ConfigurationError,
    KafkaError,
    KafkaTimeoutError,
)
from spark_kafka_source.forks import OwnProcess, used_where_made
from spark_kafka_source.net import Deadline, Retry, run
from spark_kafka_source.net.http_connection import HttpAnswer
from spark_kafka_source.registry.cache import SharedCache
from spark_kafka_source.registry.config import RegistryConfig
from spark_kafka_source.registry.errors import RegistryUnavailableError, SchemaNotFoundError
from spark_kafka_source.registry.references import with_references
from spark_kafka_source.registry.refusals import may_heal, refusal, status_and_message
from spark_kafka_source.registry.schemas import (
    ApicurioId,
    JsonAnswer,
    RegisteredSchema,
    SchemaId,
    SchemaReference,
    StoredSchema,
    core_references,
)
from spark_kafka_source.registry.server import Question, RegistryServer
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType

MOST_MS_FOR_A_MISSING_ID = 2_000
"""The time of each other url after one has no schema with an id: any record may hold junk."""
MOST_KEPT = 1_000
"""The bound of each cache: ids and versions. Entries never expire, since schemas never change."""


@dataclass(frozen=True, slots=True)
class _Version:
    id: int
    version: int
    schema: StoredSchema


@used_where_made
class RegistryClient:
    """Client of a schema registry, for several threads, with one kept connection per url.

    The client retries a failure that can heal. It asks all urls in turn until the `timeout_ms` of
    the config is over, first the url that answered last. If that has no schema with an id, each
    other url is asked once. All methods raise

    - `SchemaNotFoundError` for an id, a subject or a version that the registry does not have,
    - `RegistryDeniedError` and `TlsError`, which name the option to look at,
    - `RegistryUnavailableError` when the time is over, with the last failure of each url,
    - `SchemaError` for a schema with an unusable type or unusable references,
    - `RegistryError` for any other answer that cannot be used,
    - `ForkedError` in a fork's child of the process that made the client.
    """

    def __init__(self, config: RegistryConfig, *, retry: Retry | None = None) -> None:
        self._process = OwnProcess("client of a schema registry")
        self.config = config
        self._servers = [RegistryServer(url, config) for url in config.urls]
        self._retry = retry or Retry()
        self._by_id: SharedCache[SchemaId, RegisteredSchema] = SharedCache(MOST_KEPT)
        self._by_version: SharedCache[tuple[str, int], _Version] = SharedCache(MOST_KEPT)
        self._is_ended = False

    def close(self) -> None:
        """Close the connections. A later request opens them again."""
        for server in list(self._servers):
            server.close()

    def end(self) -> None:
        """Close the connections for good. Running and later requests raise `ClosedError`."""
        self._is_ended = True
        self.close()

    def schema(self, id: SchemaId) -> SchemaText:
        """Return the schema with this id or GUID, and all schemas that it refers to."""
        return self.by_id(id).schema

    def by_id(self, id: SchemaId) -> RegisteredSchema:
        """Return the schema with this id or GUID as registered, without a subject or a version."""
        deadline = self._deadline()
        return self._by_id.get(id, lambda: self._find_id(id, deadline), deadline)

    def by_subject(
        self, subject: str, version: int | Literal["latest"] = "latest"
    ) -> RegisteredSchema:
        """Return a version of a subject. Each call asks for the latest version anew."""
        deadline = self._deadline()
        if isinstance(version, int):
            stored = self._version(subject, version, deadline)
        else:
            what = f"the latest version of {_subject_text(subject)}"
            stored = self._ask_version(Question(what, _versions(subject, version)), deadline)
        text = with_references(stored.schema, lambda reference: self._referred(reference, deadline))
        return RegisteredSchema(stored.id, stored.version, subject, text, stored.schema.references)

    def look_up(
        self,
        subject: str,
        schema: SchemaText,
        *,
        references: Sequence[SchemaReference] = (),
        normalize: bool = False,
    ) -> RegisteredSchema | None:
        """Return the id and version of this schema in the subject, or None if it is not there."""
        body = _body(schema, references)
        question = Question(
            f"the schema of {_subject_text(subject)}", _posted(subject, "", normalize), body
        )
        try:
            answer = self._json(question, self._deadline())
        except SchemaNotFoundError:
            return None
        id, version = answer.number("id"), answer.number("version")
        found = replace(schema, rules=answer.rules())
        return RegisteredSchema(id, version, subject, found, tuple(references))

    def register(
        self,
        subject: str,
        schema: SchemaText,
        *,
        references: Sequence[SchemaReference] = (),
        normalize: bool = False,
    ) -> int:
        """Register the schema unless the subject has it already, and return its id.

        Also raises `IncompatibleSchemaError` and `InvalidSchemaError` with the registry's reason.
        """
        body = _body(schema, references)
        what = f"registering a schema of {_subject_text(subject)}"
        question = Question(what, _posted(subject, "/versions", normalize), body)
        return self._json(question, self._deadline()).number("id")

    def _find_id(self, id: SchemaId, deadline: Deadline) -> RegisteredSchema:
        if isinstance(id, ApicurioId):
            return self._find_in_core(id, deadline)
        is_guid = isinstance(id, UUID)
        path = f"/schemas/guids/{id}" if is_guid else f"/schemas/ids/{id}"
        what = f"the schema with the {'GUID' if is_guid else 'id'} {id}"
        question = Question(what, path, is_of_id=True)
        stored = self._json(question, deadline).schema()
        text = with_references(stored, lambda reference: self._referred(reference, deadline))
        return RegisteredSchema(id, None, None, text, stored.references)

    def _find_in_core(self, id: ApicurioId, deadline: Deadline) -> RegisteredSchema:
        """Ask Apicurio's own API. Only Avro needs its schemas, and the API does not say the type.

        The subject of a reference is its path there.
        """

        def find(path: str) -> StoredSchema:
            question = Question(f"the schema {id}", path, is_of_id=True, of_core=True)
            text, _ = self._answer(question, deadline)
            what = Question(f"the references of {id}", f"{path}/references", of_core=True)
            answer, where = self._answer(what, deadline)
            references = core_references(answer.body, f"{where}: {what.what}")
            return StoredSchema(SchemaType.AVRO, text.body.decode(errors="replace"), references)

        stored = find(f"/ids/{id.kind}s/{id.number}")
        text = with_references(stored, lambda reference: find(reference.subject))
        return RegisteredSchema(id, None, None, text, stored.references)

    def _referred(self, reference: SchemaReference, deadline: Deadline) -> StoredSchema:
        return self._version(reference.subject, reference.version, deadline).schema

    def _version(self, subject: str, version: int, deadline: Deadline) -> _Version:
        # Records of a version stay in Kafka although the version may have been deleted since.
        path = f"{_versions(subject, version)}?deleted=true"
        question = Question(f"version {version} of {_subject_text(subject)}", path)
        key = (subject, version)
        return self._by_version.get(key, lambda: self._ask_version(question, deadline), deadline)

    def _ask_version(self, question: Question, deadline: Deadline) -> _Version:
        answer = self._json(question, deadline)
        return _Version(answer.number("id"), answer.number("version"), answer.schema())

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self.config.timeout_ms)

    def _json(self, question: Question, deadline: Deadline) -> JsonAnswer:
        answer, where = self._answer(question, deadline)
        return JsonAnswer(answer.body, f"{where}: {question.what}")

    def _answer(self, question: Question, deadline: Deadline) -> tuple[HttpAnswer, str]:
        """Return a useful answer, and the address that gave it."""
        try:
            conversation = self._retry.run(
                question.what, partial(self._ask_in_turn, question), lambda _: None, deadline
            )
            return run(conversation)
        except KafkaTimeoutError as error:
            raise RegistryUnavailableError(f"The registry is not available: {error}") from error

    async def _ask_in_turn(self, question: Question, deadline: Deadline) -> tuple[HttpAnswer, str]:
        """Return the first useful answer, and the address that gave it. It blocks this thread."""
        if self._is_ended:
            raise ClosedError("The client of the schema registry is closed")
        failures = []
        missing: SchemaNotFoundError | None = None
        # Each url gets two turns before the deadline, even if another url never answers.
        share_ms = max(1, deadline.timeout_ms // (2 * len(self._servers)))
        for server in list(self._servers):
            try:
                answer = server.ask(question, deadline.within_ms(share_ms))
            except KafkaError as error:
                if not error.has_remedy:
                    raise
                failures.append(str(error))
                continue
            where = server.where
            if may_heal(answer.status):
                failures.append(f"{where}: {status_and_message(answer, self.config)}")
                continue
            self._prefer(server)
            if answer.status == 200:
                return answer, where
            refused = refusal(answer, f"{where}: {question.what}", question.target(), self.config)
            if not (question.is_of_id and isinstance(refused, SchemaNotFoundError)):
                raise refused
            # A replica may lag behind the one that registered the schema.
            missing, share_ms = refused, min(share_ms, MOST_MS_FOR_A_MISSING_ID)
        if missing is not None:
            raise missing
        raise RegistryUnavailableError("; ".join(failures))

    def _prefer(self, server: RegistryServer) -> None:
        if server is not self._servers[0]:
            others = [other for other in self._servers if other is not server]
            self._servers = [server, *others]


def _versions(subject: str, version: int | str) -> str:
    return f"/subjects/{_quoted(subject)}/versions/{version}"


def _posted(subject: str, path: str, normalize: bool) -> str:
    return f"/subjects/{_quoted(subject)}{path}{'?normalize=true' if normalize else ''}"


def _quoted(subject: str) -> str:
    if subject.strip(".") == "":
        # Servers take a subject of dots for a folder, and so read another path.
        raise ConfigurationError("subject", "{} is no subject", "Give a name", subject)
    return quote(subject, safe="", errors="replace")


def _subject_text(subject: str) -> str:
    return f"subject {subject[:200]!r}"


def _body(schema: SchemaText, references: Sequence[SchemaReference]) -> bytes:
    unnamed = {name for name, _ in schema.references} - {reference.name for reference in references}
    if unnamed:
        found = f"it refers to {', '.join(sorted(unnamed))[:200]}"
        raise SchemaError("", found, "Say in `references` which subjects and versions these are")
    body: dict[str, Any] = {"schema": schema.text}
    if schema.type is not SchemaType.AVRO:
        body["schemaType"] = schema.type.value
    if references:
        body["references"] = [
            {"name": reference.name, "subject": reference.subject, "version": reference.version}
            for reference in references
        ]
    return json.dumps(body).encode()
