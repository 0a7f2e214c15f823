"""Client of AWS Glue's schema registry, by Amazon's own library: the extra `aws`.

https://docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html
"""

import os
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, Literal
from uuid import UUID

from spark_kafka_source.errors import ClosedError, ConfigurationError, KafkaTimeoutError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.forks import OwnProcess, used_where_made
from spark_kafka_source.net import Deadline, Retry, run
from spark_kafka_source.registry.cache import SharedCache
from spark_kafka_source.registry.client import MOST_KEPT, RegistryClient
from spark_kafka_source.registry.config import GLUE_REGION, GlueConfig, RegistryConfig
from spark_kafka_source.registry.errors import (
    RegistryDeniedError,
    RegistryError,
    RegistryUnavailableError,
    SchemaNotFoundError,
)
from spark_kafka_source.registry.refusals import may_heal
from spark_kafka_source.registry.schemas import RegisteredSchema, SchemaId
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType

DEFAULT_REGISTRY = "default-registry"

_MOST_SHOWN = 300
_DENIALS = ("AccessDenied", "UnrecognizedClient", "Signature", "Token", "NotAuthorized")
_CREDENTIALS = "Give this process AWS credentials with the right glue:GetSchemaVersion"


@used_where_made
class GlueClient:
    """Client of Glue's registry in one region, for several threads, with AWS's own credentials.

    A failure that can heal is tried again until the `timeout_ms` of the config is over. The methods
    raise as those of a `RegistryClient`. The constructor raises `ConfigurationError` without the
    library or a region.
    """

    def __init__(self, config: GlueConfig, *, retry: Retry | None = None) -> None:
        self._process = OwnProcess("client of AWS Glue's schema registry")
        self.config = config
        self._by_id: SharedCache[UUID, RegisteredSchema] = SharedCache(MOST_KEPT)
        self._is_ended = False
        self._retry = retry or Retry()
        # AWS's sessions are for one thread at a time.
        self._turn = threading.Lock()
        self._connected = _connections(config)
        with closing(self._connected(1.0)) as glue:
            self._where = f"AWS Glue in {glue.meta.region_name}"

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def end(self) -> None:
        """Let running and later requests raise `ClosedError`."""
        self._is_ended = True

    def schema(self, id: SchemaId) -> SchemaText:
        """Return the schema of this version."""
        return self.by_id(id).schema

    def by_id(self, id: SchemaId) -> RegisteredSchema:
        """Return the schema of the version with this UUID."""
        if not isinstance(id, UUID):
            raise SchemaNotFoundError(f"AWS Glue has UUIDs of versions, and {id} is none")
        return self._by_id.get(
            id,
            lambda: self._asked(f"the schema version {id}", None, SchemaVersionId=str(id)),
            Deadline.after_ms(self.config.timeout_ms),
        )

    def by_subject(
        self, subject: str, version: int | Literal["latest"] = "latest"
    ) -> RegisteredSchema:
        """Return a version of the schema `<name>`, `<registry>/<name>`, or an ARN."""
        registry, _, name = subject.rpartition("/")
        named = {"RegistryName": registry or DEFAULT_REGISTRY, "SchemaName": name}
        if subject.startswith("arn:"):
            named = {"SchemaArn": subject}
        number = {"LatestVersion": True} if version == "latest" else {"VersionNumber": version}
        what = f"the version {version} of the schema {subject[:200]!r}"
        return self._asked(what, subject, SchemaId=named, SchemaVersionNumber=number)

    def _asked(self, what: str, subject: str | None, **parameters: object) -> RegisteredSchema:
        async def ask(deadline: Deadline) -> RegisteredSchema:
            # It blocks this thread.
            return self._asked_once(what, subject, deadline, parameters)

        deadline = Deadline.after_ms(self.config.timeout_ms)
        try:
            return run(self._retry.run(what, ask, lambda _: None, deadline))
        except KafkaTimeoutError as error:
            raise RegistryUnavailableError(f"{self._where} is not available: {error}") from error

    def _asked_once(
        self, what: str, subject: str | None, deadline: Deadline, parameters: dict[str, object]
    ) -> RegisteredSchema:
        if self._is_ended:
            raise ClosedError("The client of the schema registry is closed")
        # A question may wait twice: for the connection, and for the answer. The library has no
        # timeout for one question.
        with self._turn:
            glue = self._connected(max(0.001, deadline.remaining_seconds() / 2))
        where = f"{self._where}: {what}"
        try:
            with closing(glue):
                answer = glue.get_schema_version(**parameters)
        except _errors().ClientError as error:
            raise self._refusal(where, error.response) from error
        except (
            _errors().NoCredentialsError,
            _errors().PartialCredentialsError,
            _errors().CredentialRetrievalError,
        ) as error:
            raise RegistryDeniedError(f"{where}: {error}. {_CREDENTIALS}") from error
        except _errors().ParamValidationError as error:
            raise self._not_found(f"{where}: {str(error)[:_MOST_SHOWN]}") from error
        except _errors().SSLError as error:
            text = f"{where}: {str(error)[:_MOST_SHOWN]}. AWS_CA_BUNDLE names certificates to trust"
            raise RegistryError(text) from error
        except _errors().BotoCoreError as error:
            raise RegistryUnavailableError(f"{where}: {str(error)[:_MOST_SHOWN]}") from error
        return _registered(where, subject, answer)

    def _refusal(self, where: str, response: dict[str, Any]) -> RegistryError:
        code = str(response.get("Error", {}).get("Code", ""))
        message = str(response.get("Error", {}).get("Message", ""))[:_MOST_SHOWN]
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        text = f"{where}: {code}, {message!r}"
        if code == "EntityNotFoundException":
            return self._not_found(text)
        if any(word in code for word in _DENIALS):
            return RegistryDeniedError(f"{text}. {_CREDENTIALS}")
        if may_heal(status) or "Throttl" in code:
            return RegistryUnavailableError(text)
        return RegistryError(text)

    def _not_found(self, text: str) -> SchemaNotFoundError:
        error = SchemaNotFoundError(text)
        # A UUID of another region, or of another account, is not there either.
        error.where = self._where
        return error


def client_of(config: RegistryConfig | GlueConfig) -> RegistryClient | GlueClient:
    """Return a client of this registry. Raises `ConfigurationError`."""
    return GlueClient(config) if isinstance(config, GlueConfig) else RegistryClient(config)


def _registered(where: str, subject: str | None, answer: dict[str, Any]) -> RegisteredSchema:
    text, number = answer.get("SchemaDefinition"), answer.get("VersionNumber")
    if not isinstance(text, str):
        status = str(answer.get("Status"))[:100]
        raise RegistryError(f"{where}: its status is {status!r}, and it has no text")
    try:
        id = UUID(str(answer.get("SchemaVersionId")))
    except ValueError as error:
        raise RegistryError(f"{where}: its SchemaVersionId is no UUID") from error
    kind = str(answer.get("DataFormat"))
    if kind not in SchemaType.__members__:
        known = ", ".join(SchemaType.__members__)
        raise SchemaError("", f"a schema of the format {kind[:100]!r}", f"There are {known}")
    return RegisteredSchema(id, number, subject, SchemaText(SchemaType(kind), text))


def _errors() -> Any:
    import botocore.exceptions  # noqa: PLC0415  # An extra: only this framing needs it.

    return botocore.exceptions


def _connections(config: GlueConfig) -> Callable[[float], Any]:
    """Return what makes a client of Amazon's, with a timeout in seconds."""
    try:
        import boto3  # noqa: PLC0415  # An extra: only this framing needs it.
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError(
            GLUE_REGION,
            "AWS Glue's registry needs the library boto3, which is not installed",
            f"{install_extra('aws')} on the driver and on every executor",
        ) from None
    region = config.region.strip() or None
    session = boto3.session.Session(region_name=region)
    region = session.region_name or os.environ.get("AWS_REGION")

    def connected(seconds: float) -> Any:
        settings = Config(
            connect_timeout=seconds, read_timeout=seconds, retries={"total_max_attempts": 1}
        )
        try:
            return session.client("glue", region_name=region, config=settings)
        except _errors().NoRegionError as error:
            expected = "Give it, as in 'eu-central-1', or set AWS_REGION"
            raise ConfigurationError(GLUE_REGION, "is missing", expected) from error
        except (_errors().BotoCoreError, ValueError) as error:
            found = f"cannot be used: {str(error)[:_MOST_SHOWN].rstrip('.')}"
            expected = "Give a region, as 'eu-central-1'"
            raise ConfigurationError(GLUE_REGION, found, expected) from error

    return connected
