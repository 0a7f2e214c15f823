"""Users and their rights, set by Kafka's tools, as an operator sets them.

https://kafka.apache.org/documentation/#security_authz
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret
from spark_kafka_source.testing.errors import ToolError
from spark_kafka_source.testing.private_file import write_private
from spark_kafka_source.testing.properties import as_properties
from spark_kafka_source.testing.security import (
    SCRAM_DIGESTS,
    SCRAM_ITERATIONS,
    DelegationToken,
    login,
)

_TRIES = 10
_RESOURCES = ("topic", "group", "transactional_id")


def acl_arguments(
    permission: str, user: str, operations: Sequence[str], resource: Mapping[str, str]
) -> list[str]:
    """Return arguments for `kafka-acls` to "allow" or "deny" a user operations on one resource."""
    if len(resource) != 1 or not resource.keys() <= set(_RESOURCES):
        given = ", ".join(resource) or "none"
        raise ConfigurationError("resource", given, f"Give one of {', '.join(_RESOURCES)}")
    ((kind, name),) = resource.items()
    arguments = ["--add", f"--{permission}-principal", f"User:{user}"]
    for operation in operations:
        arguments += ["--operation", operation]
    return [*arguments, f"--{kind.replace('_', '-')}", name]


def add_scram_user(
    tool: Callable[..., str], directory: Path, mechanism: str, user: str, password: Secret
) -> None:
    """Give the brokers a user's password for one SCRAM mechanism."""
    if mechanism not in SCRAM_DIGESTS:
        raise ConfigurationError("mechanism", mechanism, f"Give one of {', '.join(SCRAM_DIGESTS)}")
    # From a file `kafka-configs` takes any password, and no list of processes shows it.
    credential = f"iterations={SCRAM_ITERATIONS},password={password.reveal()}"
    with _properties_file(directory, {mechanism: credential}) as path:
        entity = ("--entity-type", "users", "--entity-name", user)
        tool("configs", "--alter", *entity, "--add-config-file", str(path))


def create_delegation_token(
    tool: Callable[..., str], directory: Path, user: str, password: Secret
) -> DelegationToken:
    """Create a delegation token for a user of SCRAM, and wait until the broker knows it."""
    as_user = _scram(username=user, password=password.reveal())
    with _properties_file(directory, as_user) as path:
        arguments = ("--create", "--max-life-time-period", "-1", "--command-config", str(path))
        token = _read_token(tool("delegation-tokens", *arguments, listener="SASL_PLAINTEXT"))
    with_token = _scram(username=token.token_id, password=token.hmac.reveal(), tokenauth="true")
    with _properties_file(directory, with_token) as path:
        for tries_left in reversed(range(_TRIES)):
            try:
                tool(
                    "broker-api-versions", "--command-config", str(path), listener="SASL_PLAINTEXT"
                )
                break
            except ToolError:  # The broker learns of a token a moment after the controller.
                if not tries_left:
                    raise
    return token


def _scram(**values: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": login("scram.ScramLoginModule", **values),
    }


def _read_token(written: str) -> DelegationToken:
    """Return the token in the tool's table: a line of titles, then its row."""
    lines = [line.split() for line in written.splitlines() if line]
    for titles, row in pairwise(lines):
        if titles[:2] == ["TOKENID", "HMAC"] and len(row) > 1:
            return DelegationToken(row[0], Secret(row[1]))
    raise ToolError("delegation-tokens", "showed no token", "")


@contextmanager
def _properties_file(directory: Path, properties: Mapping[str, str]) -> Iterator[Path]:
    with TemporaryDirectory(dir=directory) as folder:
        content = as_properties(properties).encode()
        yield write_private(Path(folder, "tool.properties"), content)
