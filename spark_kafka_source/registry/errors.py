"""What a schema registry answers that is of no use; what is wrong with a schema is `values`'."""

from spark_kafka_source.errors import Remedy, RemoteError


class RegistryError(RemoteError):
    """A registry answered what it should not. The text names its host and what was asked."""


class SchemaNotFoundError(RegistryError):
    """The registry has no such id, subject or version; it may have it later."""


class RegistryDeniedError(RegistryError):
    """The registry does not know who asks, or does not let them; names the option that does."""


class IncompatibleSchemaError(RegistryError):
    """A schema was not registered: those who read the subject could not read what it writes."""


class InvalidSchemaError(RegistryError):
    """The registry takes a schema, a subject or a version for none."""


class RegistryUnavailableError(RegistryError):
    """No url answered in time: the text lists each with what it said last."""

    remedy = Remedy.RETRY
