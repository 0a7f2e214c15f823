"""Errors for a registry's answers with a status other than 200, with the option to change."""

from spark_kafka_source.net.http_answer import json_object
from spark_kafka_source.net.http_connection import HttpAnswer
from spark_kafka_source.registry.config import TOKEN_OPTION, USER_INFO_OPTION, RegistryConfig
from spark_kafka_source.registry.errors import (
    IncompatibleSchemaError,
    InvalidSchemaError,
    RegistryDeniedError,
    RegistryError,
    SchemaNotFoundError,
)
from spark_kafka_source.registry.url import URL_OPTION

GUIDS = "/schemas/guids/"
CORE = "/apis/registry/v2"
"""The path of Apicurio's own API, which its versions 2 and 3 have."""

_NOT_FOUND = range(40_400, 40_500)
_MOST_SHOWN = 1_000
_CREDENTIALS = f"'{USER_INFO_OPTION}' or '{TOKEN_OPTION}'"


def may_heal(status: int) -> bool:
    """Whether a later request, or another url, may answer the same question."""
    return status in (408, 429) or status >= 500


def status_and_message(answer: HttpAnswer, config: RegistryConfig) -> str:
    """Return the status and the registry's own message, cut to a readable length."""
    message = json_object(answer.body[:65_536]).get("message")
    if not isinstance(message, str) or not message:
        return f"status {answer.status}"
    # Remove secrets before the cut: a cut password would no longer match, and would show.
    return f"status {answer.status}, {config.without_secrets(message)[:_MOST_SHOWN]!r}"


def refusal(answer: HttpAnswer, what: str, path: str, config: RegistryConfig) -> RegistryError:
    """Return the error for a refusing answer to the request of this path."""
    text = f"{what}: {status_and_message(answer, config)}"
    match answer.status:
        case 401 | 403:
            return RegistryDeniedError(f"{text}. {_advice(answer.status, config)}")
        case 404:
            return _not_found(answer, text, path)
        case 409:
            return IncompatibleSchemaError(text)
        case 422:
            return InvalidSchemaError(text)
    return RegistryError(f"{text}. Check '{URL_OPTION}'")


def _not_found(answer: HttpAnswer, text: str, path: str) -> RegistryError:
    """Tell a missing schema, which has an error code, from a path unknown to the server."""
    fields = json_object(answer.body)
    code, name = fields.get("error_code"), fields.get("name")
    # Apicurio's own API names what is missing: it may be "VersionNotFoundException".
    is_named = path.startswith(CORE) and isinstance(name, str) and name != "NotFoundException"
    # Some registries do not support GUIDs, and any record may hold an invented GUID.
    if code in _NOT_FOUND or is_named or path.startswith(GUIDS):
        return SchemaNotFoundError(text)
    found = "without a registry's error code"
    return RegistryError(f"{text}, {found}. Check '{URL_OPTION}', its path too")


def _advice(status: int, config: RegistryConfig) -> str:
    has_credentials = any(config.authorization(url) for url in config.urls)
    if status == 403 and has_credentials:
        return f"Grant the right in the registry, or give other credentials by {_CREDENTIALS}"
    if has_credentials:
        return f"Check {_CREDENTIALS}"
    return f"Give credentials by {_CREDENTIALS}"
