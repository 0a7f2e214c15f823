"""The commands `topics`, `topics create`, `delete`, `alter` and `configs`."""

import argparse
from collections.abc import Mapping, Sequence

from spark_kafka_source.admin import (
    ConfigEntry,
    KafkaAdmin,
    NewTopic,
    OffsetSpec,
    PartitionDescription,
    TopicDescription,
    TopicExistsError,
)
from spark_kafka_source.admin.refusals import TOPIC_CONFIGS
from spark_kafka_source.command_line.configuration import configuration
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.errors import ConfigurationError, KafkaError, TopicNotFoundError
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.topic_partition import TopicPartition

_TOPICS = ("topic", "partitions", "replicas", "under_replicated", "leaderless", "internal", "error")
_PARTITIONS = ("topic", "partition", "leader", "replicas", "isr", "earliest", "latest")
_TIERED = {
    "earliest_local": OffsetSpec.earliest_local(),
    "latest_tiered": OffsetSpec.latest_tiered(),
    "earliest_pending_upload": OffsetSpec.earliest_pending_upload(),
}
_CONFIGS = ("topic", "name", "value", "source")
_NONE = "There are no topics"
# `groups` has these actions, `topics` does without.
_NO_ACTIONS = {
    "list": "To list all topics, give `topics` alone",
    "describe": "To describe topics, give `topics` and their names",
}


def topics(arguments: argparse.Namespace, output: Output) -> int:
    """Show a row for each topic.

    With names, `--partitions` or `--tiered`, show a row for each partition.
    """
    with KafkaAdmin(**configuration(arguments)) as admin:
        if arguments.names or arguments.partitions or arguments.tiered:
            described = _described(admin, arguments.names)
            partitions = [each for topic in described for each in topic.partitions]
            rows = [_partition(each) for each in partitions]
            if arguments.tiered:
                _add_tiered(admin, partitions, rows, output)
            of_tiers = _TIERED if arguments.tiered else ()
            output.rows(rows, (*_PARTITIONS, *of_tiers, "error"), _NONE)
        else:
            output.rows([_topic(topic) for topic in admin.list_topics()], _TOPICS, _NONE)
    return 0


def _described(admin: KafkaAdmin, names: Sequence[str]) -> Sequence[TopicDescription]:
    try:
        return admin.describe_topics(names or None)
    except TopicNotFoundError as error:
        if error.topic == names[0] and error.topic in _NO_ACTIONS:
            found = "there is no topic and no action {}"
            raise ConfigurationError(
                "topics", found, _NO_ACTIONS[error.topic], error.topic
            ) from error
        raise


def _topic(topic: TopicDescription) -> dict[str, object]:
    return {
        "topic": topic.name,
        "id": str(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "under_replicated": sum(partition.under_replicated for partition in topic.partitions),
        "leaderless": sum(partition.leader is None for partition in topic.partitions),
        "internal": topic.is_internal,
        "error": topic.error,
    }


def _partition(partition: PartitionDescription) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "offline": list(partition.offline_replicas),
        "earliest": partition.earliest,
        "latest": partition.latest,
        "error": partition.error,
    }


def _add_tiered(
    admin: KafkaAdmin,
    partitions: Sequence[PartitionDescription],
    rows: Sequence[dict[str, object]],
    output: Output,
) -> None:
    """Add the offsets of tiered storage to the rows. Note the ones that cannot be had.

    A partition without a leader has none.
    """
    led = [TopicPartition(each.topic, each.partition) for each in partitions if not each.error]
    for name, spec in _TIERED.items():
        offsets: Mapping[TopicPartition, OffsetAndTimestamp | None] = {}
        try:
            offsets = admin.list_offsets(dict.fromkeys(led, spec))
        except KafkaError as error:
            output.note(str(error))
        for each, row in zip(partitions, rows, strict=True):
            at = offsets.get(TopicPartition(each.topic, each.partition))
            row[name] = None if at is None else at.offset


def create(arguments: argparse.Namespace, output: Output) -> int:
    """Create topics, and wait until their leaders serve them."""
    configs = _configs(arguments)
    topics = [
        NewTopic(name, arguments.partitions, arguments.replication_factor, configs)
        for name in dict.fromkeys(arguments.names)
    ]
    with KafkaAdmin(**configuration(arguments)) as admin:
        errors = admin.create_topics(topics, validate_only=arguments.dry_run)
    note = "exists already" if arguments.if_not_exists else None
    return _show(output, "created", errors, TopicExistsError, note, is_dry=arguments.dry_run)


def delete(arguments: argparse.Namespace, output: Output) -> int:
    """Delete topics with all their records, and wait until they are gone."""
    with KafkaAdmin(**configuration(arguments)) as admin:
        errors = admin.delete_topics(arguments.names)
    note = "does not exist" if arguments.if_exists else None
    return _show(output, "deleted", errors, TopicNotFoundError, note)


def alter(arguments: argparse.Namespace, output: Output) -> int:
    """Change topics. A topic of which the brokers refuse a part is not changed at all."""
    changes = _changes(arguments)
    if not changes and arguments.partitions is None:
        expected = "Give --partitions, --set or --unset"
        raise ConfigurationError("topics alter", "there is nothing to change", expected)
    names = list(dict.fromkeys(arguments.names))
    with KafkaAdmin(**configuration(arguments)) as admin:
        errors = _alter(admin, names, arguments.partitions, changes, validate_only=True)
        if not arguments.dry_run:
            allowed = [name for name in names if errors[name] is None]
            errors |= _alter(admin, allowed, arguments.partitions, changes, validate_only=False)
    return _show(output, "altered", errors, is_dry=arguments.dry_run)


def _alter(
    admin: KafkaAdmin,
    names: Sequence[str],
    partitions: int | None,
    changes: Mapping[str, str | None],
    *,
    validate_only: bool,
) -> dict[str, KafkaError | None]:
    errors: dict[str, KafkaError | None] = dict.fromkeys(names)
    if changes:
        errors |= admin.alter_configs(dict.fromkeys(names, changes), validate_only=validate_only)
    if partitions is not None:
        totals = {name: partitions for name in names if errors[name] is None}
        errors |= admin.create_partitions(totals, validate_only=validate_only)
    return errors


def configs(arguments: argparse.Namespace, output: Output) -> int:
    """Show a row for each configuration of these topics."""
    with KafkaAdmin(**configuration(arguments)) as admin:
        configs = admin.describe_configs(arguments.names)
    rows = [
        _config(topic, entry)
        for topic, entries in configs.items()
        for entry in sorted(entries.values(), key=lambda entry: entry.name)
        if arguments.all or not entry.is_default
    ]
    output.rows(rows, _CONFIGS, "All have Kafka's defaults; show them by --all")
    return 0


def _config(topic: str, entry: ConfigEntry) -> dict[str, object]:
    return {
        "topic": topic,
        "name": entry.name,
        "value": entry.value,
        "source": entry.source,
        "default": entry.is_default,
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }


def _changes(arguments: argparse.Namespace) -> dict[str, str | None]:
    """Return the configurations in `--set`, and None for each in `--unset`."""
    given = _configs(arguments)
    unset = [name.strip() for name in arguments.unset]
    for name in unset:
        if name in given:
            raise ConfigurationError("--unset", "{} is given by --set, too", "Give one", name)
    return {**given, **dict.fromkeys(unset)}


def _configs(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the configurations in `--set`."""
    for text in arguments.config:
        name = text.partition("=")[0].strip()
        if name in TOPIC_CONFIGS:
            found = "{} is a configuration of topics, not of this client"
            raise ConfigurationError("--config", found, "Give it by --set", name)
    given: dict[str, str] = {}
    for text in arguments.set:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigurationError("--set", "found {}", "Give 'name=value'", text)
        if name in given:
            raise ConfigurationError("--set", "{} is given twice", "Give it once", name)
        given[name] = value
    return given


def _show(
    output: Output,
    done: str,
    errors: Mapping[str, KafkaError | None],
    passed_over: type[KafkaError] = KafkaError,
    note_of_those: str | None = None,
    *,
    is_dry: bool = False,
) -> int:
    """Show what is done. Return 1 if a topic has an error.

    An error `passed_over` is none if there is a note for it.
    """
    failures = 0
    rows: list[dict[str, object]] = []
    for topic, error in errors.items():
        note = note_of_those if isinstance(error, passed_over) else None
        failed = error is not None and note is None
        failures += failed
        row = {"topic": topic, done: error is None and not is_dry}
        rows.append({**row, "note": note, "error": str(error) if failed else None})
    output.rows(rows, ("topic", done, "note", "error"))
    if is_dry:
        output.note(f"Nothing was {done}: this was a dry run, and the brokers checked it")
    return min(failures, 1)
