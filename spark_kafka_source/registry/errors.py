"""Errors of a schema registry. Errors in a schema itself are in `values`."""

from spark_kafka_source.errors import Remedy, RemoteError


class RegistryError(RemoteError):
    """An unexpected answer of a registry. The text names the host and the question."""


class SchemaNotFoundError(RegistryError):
    """The registry has no such id, subject or version. It may have it later."""

    where = "the registry"
    """What was asked, for texts."""


class RegistryDeniedError(RegistryError):
    """The registry rejects our credentials or rights. The text names the option for credentials."""


class IncompatibleSchemaError(RegistryError):
    """The registry did not register a schema: it breaks the compatibility rule of its subject."""


class InvalidSchemaError(RegistryError):
    """The registry says that a schema, a subject or a version is invalid."""


class RegistryUnavailableError(RegistryError):
    """No url answered in time. The text lists the last failure of each url."""

    remedy = Remedy.RETRY
