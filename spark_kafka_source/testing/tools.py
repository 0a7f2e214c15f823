"""Kafka's own command-line tools, by their names in `bin/kafka-<name>.sh`."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing.child import Child
from spark_kafka_source.testing.errors import ToolError
from spark_kafka_source.testing.java import Runtime

_GROUP = "org.apache.kafka.tools.consumer.group"
_OFFLINE = frozenset({"dump-log", "storage"})

TOOLS: Mapping[str, str] = MappingProxyType(
    {
        "acls": "org.apache.kafka.tools.AclCommand",
        "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
        "configs": "org.apache.kafka.tools.ConfigCommand",
        "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "consumer-groups": f"{_GROUP}.ConsumerGroupCommand",
        "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
        "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
        "dump-log": "org.apache.kafka.tools.DumpLogSegments",
        "features": "org.apache.kafka.tools.FeatureCommand",
        "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
        "groups": "org.apache.kafka.tools.GroupsCommand",
        "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
        "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
        "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
        "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "share-groups": f"{_GROUP}.ShareGroupCommand",
        "storage": "kafka.tools.StorageTool",
        "topics": "org.apache.kafka.tools.TopicCommand",
        "transactions": "org.apache.kafka.tools.TransactionsCommand",
    }
)
"""The class of each tool."""

_BEFORE_4_4 = {"configs": "kafka.admin.ConfigCommand"}
"""The classes of tools whose class Kafka 4.4 has moved."""


def run_tool(
    runtime: Runtime,
    directory: Path,
    bootstrap_servers: str,
    name: str,
    arguments: Sequence[str],
    *,
    version: str,
    timeout_ms: int,
) -> str:
    """Run one of the `TOOLS` of this version of Kafka to its end, and return its standard output.

    The output passes through files in `directory`. Raises `ToolError` if the tool fails or takes
    longer than `timeout_ms`, and `ConfigurationError` if there is no such tool.
    """
    if name not in TOOLS:
        known = f"Kafka's tools here are {', '.join(TOOLS)}"
        raise ConfigurationError("tool", f"there is none named '{name}'", known)
    where = () if name in _OFFLINE else ("--bootstrap-server", bootstrap_servers)
    command = runtime.command(_main_class(name, version), *where, *arguments, log_level="WARN")
    with TemporaryDirectory(dir=directory) as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        with closing(Child(command, output=output, errors=errors)) as tool:
            status = tool.wait(timeout_ms)
        written = output.read_text(errors="replace")
        if status != 0:
            what = f"ended with {status}" if status else f"did not end within {timeout_ms} ms"
            raise ToolError(name, what, errors.read_text(errors="replace") + written)
        return written


def _main_class(name: str, version: str) -> str:
    is_former = tuple(map(int, version.split(".")[:2])) < (4, 4)
    return _BEFORE_4_4.get(name, TOOLS[name]) if is_former else TOOLS[name]
