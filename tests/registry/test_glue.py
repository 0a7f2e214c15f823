"""AWS's own library asks a local server that answers as Glue does."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import (
    GlueClient,
    GlueConfig,
    RegistryDeniedError,
    RegistryError,
    RegistryUnavailableError,
    SchemaNotFoundError,
)
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType
from tests.consumer.consumers import eventually
from tests.registry.glue_server import GONE, ID, LONG, Glue, glue, version

__all__ = ["glue"]


@pytest.fixture
def client(glue: Glue) -> Iterator[GlueClient]:
    with_client = GlueClient(GlueConfig(timeout_ms=60_000))
    yield with_client
    with_client.close()


def test_a_version_is_asked_for_once_and_one_that_is_not_there_again(
    glue: Glue, client: GlueClient
) -> None:
    glue.versions[str(ID)] = version()
    for _ in range(2):
        assert client.schema(ID) == SchemaText(SchemaType.AVRO, LONG)
        with pytest.raises(SchemaNotFoundError, match="EntityNotFoundException"):
            client.schema(GONE)
    asked = [each["SchemaVersionId"] for each in glue.asked]
    assert asked == [str(ID), str(GONE), str(GONE)]


def test_a_schema_has_a_name_a_registry_or_an_arn(glue: Glue, client: GlueClient) -> None:
    for name in ("default-registry/t", "mine/t", "arn:aws:glue:x:1:schema/mine/t"):
        glue.versions[name] = version(text='"int"')
    for subject in ("t", "mine/t", "arn:aws:glue:x:1:schema/mine/t"):
        assert client.by_subject(subject).schema.text == '"int"'
    assert client.by_subject("t", 3).version == 3
    numbers = [each["SchemaVersionNumber"] for each in glue.asked]
    assert numbers == [{"LatestVersion": True}] * 3 + [{"VersionNumber": 3}]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "AccessDeniedException", RegistryDeniedError),
        (400, "UnrecognizedClientException", RegistryDeniedError),
        (400, "ExpiredTokenException", RegistryDeniedError),
        (400, "ThrottlingException", RegistryUnavailableError),
        (500, "InternalServiceException", RegistryUnavailableError),
        (400, "InvalidInputException", RegistryError),
    ],
)
def test_what_glue_says_is_an_error_by_its_kind(
    glue: Glue, client: GlueClient, status: int, code: str, kind: type[RegistryError]
) -> None:
    glue.error = status, code
    with pytest.raises(kind, match=code) as caught:
        client.schema(ID)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"DataFormat": "XML"}, SchemaError, "the format 'XML'"),
        ({"SchemaDefinition": None, "Status": "FAILURE"}, RegistryError, "status is 'FAILURE'"),
        ({"SchemaVersionId": "x"}, RegistryError, "is no UUID"),
    ],
)
def test_an_answer_is_checked(
    glue: Glue, client: GlueClient, fields: dict[str, Any], kind: type[Exception], text: str
) -> None:
    glue.versions[str(ID)] = version(**fields)
    with pytest.raises(kind, match=text):
        client.schema(ID)


def test_a_silent_server_is_asked_twice_and_given_up(glue: Glue) -> None:
    glue.speaks.clear()
    client = GlueClient(GlueConfig(timeout_ms=800))
    began = time.monotonic()
    with pytest.raises(RegistryUnavailableError):
        client.schema(ID)
    assert time.monotonic() - began < 60  # An attempt would wait 60 s by default.
    eventually(lambda: len(glue.asked) == 2)
    client.end()


def test_without_credentials_or_a_region_it_is_said(
    glue: Glue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(RegistryDeniedError, match="glue:GetSchemaVersion"):
        GlueClient(GlueConfig()).schema(ID)
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(ConfigurationError, match=r"'schema\.registry\.glue\.region': is missing"):
        GlueClient(GlueConfig())
    with pytest.raises(ConfigurationError, match=r"cannot be used: .*[^.]\. Give a region"):
        GlueClient(GlueConfig("not a region!"))
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(ConfigurationError, match="extra 'aws'"):
        GlueClient(GlueConfig())


def test_options_of_another_registry_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"has no effect where 'value\.framing'"):
        GlueConfig.from_settings(Settings({"schema.registry.url": "http://a"}))
