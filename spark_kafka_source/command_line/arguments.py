"""Arguments of the command line."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from spark_kafka_source.version import VERSION

PROGRAM = "spark-kafka-source"
# A day.
_MOST_SECONDS = 86_400
# Each is a JVM of some 400 MB.
_MOST_BROKERS = 9
_MOST_NUMBER = (1 << 31) - 1
_MOST_PORT = (1 << 16) - 1
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

_OF_TOPICS = ("create", "delete", "alter", "configs")
_FORMATS = ("text", "json", "hex")
_BROKERS_CHOOSE = "default: what the brokers have"
_FROM = (
    "'earliest', 'latest', '-N' for the last N offsets of each partition, a time (ISO 8601, in UTC "
    "unless it has a zone, or ms since 1970), or a span before now ('PT1H')"
)


class _Parser(argparse.ArgumentParser):
    """A parser that refuses abbreviations: a new option could change their meaning."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed arguments.

    End the process after `--help` and `--version` (0), and wrong arguments (2).
    """
    parser = _Parser(
        prog=PROGRAM,
        description="Shows groups, topics, transactions and records of a Kafka cluster; writes.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_groups(commands.add_parser("groups", help="list, describe, reset, delete groups"))
    _add_topics(commands)
    about = "list, describe, abort, finish transactions"
    _add_transactions(commands.add_parser("transactions", help=about))
    _add_tail(commands)
    _add_schema(commands)
    _add_produce(commands)
    _add_doctor(commands)
    _add_local_broker(commands)
    parsed, unknown = parser.parse_known_args(_with_action(arguments))
    if unknown:
        _refuse(parser, unknown)
    return parsed


def _with_action(arguments: Sequence[str] | None) -> list[str]:
    """Return the arguments with `topics create` as one command, beside `topics NAME`."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["topics"] and words[1:2] and words[1] in _OF_TOPICS:
        words[:2] = [" ".join(words[:2])]
    return words


def _refuse(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> NoReturn:
    """Report the names of unknown options, without values: a value may be a password."""
    names = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
    parser.error(f"unknown: {', '.join(names)}" if names else "too many arguments")


def _add_groups(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = _command(actions, "list", "groups", "list_groups", "all groups, type and state")
    listing.add_argument("--state", action="append", default=[], help="only these, as 'Stable'")
    listing.add_argument("--type", action="append", default=[], help="only these, as 'consumer'")
    describe = _command(actions, "describe", "groups", "describe", "state, members, lag")
    describe.add_argument("groups", metavar="GROUP", nargs="+")
    lag = _command(actions, "lag", "groups", "lag", "the lag of each partition")
    lag.add_argument("groups", metavar="GROUP", nargs="*", help="all groups, if none is named")
    delete = _command(actions, "delete", "groups", "delete", "delete groups without members")
    delete.add_argument("groups", metavar="GROUP", nargs="+")
    delete.add_argument(
        "--topic", action="append", metavar="T[:0,1]", help="only their offsets of this topic"
    )
    _add_reset(actions)


def _add_reset(actions: Any) -> None:
    about = "commit other offsets to a group without members; without --execute only show them"
    reset = _command(actions, "reset", "groups", "reset", about)
    reset.add_argument("group", metavar="GROUP")
    target = reset.add_mutually_exclusive_group(required=True)
    for name, text in (
        ("earliest", "the first offset of the log"),
        ("latest", "the end of the log"),
        ("current", "the committed offset; the end of the log, if there is none"),
    ):
        target.add_argument(f"--to-{name}", dest="to", action="store_const", const=name, help=text)
    target.add_argument(
        "--to-datetime",
        dest="to",
        metavar="TIME",
        help="the first record then or later: ISO 8601, by default UTC",
    )
    target.add_argument("--by-duration", dest="ago", metavar="SPAN", help="before now, as 'PT1H'")
    target.add_argument("--to-offset", type=int, metavar="N", help="within what the log has")
    target.add_argument("--shift-by", type=int, metavar="N", help="forward, or back with -N")
    reset.add_argument(
        "--topic",
        action="append",
        metavar="T[:0,1]",
        help="a topic, or partitions of it; default: all that the group has committed",
    )
    reset.add_argument("--execute", action="store_true", help="do it")


def _add_topics(commands: Any) -> None:
    topics = _command(commands, "topics", "topics", "topics", "topics and their partitions")
    topics.add_argument("names", metavar="NAME", nargs="*", help="only these, each partition")
    topics.add_argument("--partitions", action="store_true", help="each partition of all topics")
    about = "what is in tiered storage, too, of each partition"
    topics.add_argument("--tiered", action="store_true", help=about)
    topics.epilog = f"Also: {', '.join(f'topics {action}' for action in _OF_TOPICS)}."
    about = "create topics, and wait until they can be used"
    create = _topic_command(commands, "create", "create", about)
    create.add_argument("--replication-factor", type=_positive, metavar="N", help=_BROKERS_CHOOSE)
    create.add_argument("--if-not-exists", action="store_true", help="leave those that exist")
    delete = _topic_command(commands, "delete", "delete", "delete topics with all their records")
    delete.add_argument("--if-exists", action="store_true", help="pass over those that do not")
    alter = _topic_command(commands, "alter", "alter", "add partitions, change configurations")
    alter.add_argument(
        "--unset", action="append", default=[], metavar="NAME", help="let the default count again"
    )
    for parser in (create, alter):
        help_ = _BROKERS_CHOOSE if parser is create else "so many in all; they can only be added"
        parser.add_argument("--partitions", type=_positive, metavar="N", help=help_)
        about = "a configuration of the topics, as retention.ms=86400000; may be repeated"
        parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=about)
        parser.add_argument("--dry-run", action="store_true", help="let the brokers check it only")
    about = "the configurations of topics that are not Kafka's defaults"
    configs = _topic_command(commands, "configs", "configs", about)
    configs.add_argument("--all", action="store_true", help="the defaults, too")


def _topic_command(commands: Any, action: str, function: str, about: str) -> Any:
    parser = _command(commands, f"topics {action}", "topics", function, about)
    parser.add_argument("names", metavar="NAME", nargs="+")
    return parser


def _add_transactions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    module = "transactions"
    about = "open transactions: since when, of which query and task, and how to end them"
    listing = _command(actions, "list", module, "list_open", about)
    listing.add_argument("--state", action="append", default=[], help="these, as 'CompleteCommit'")
    listing.add_argument("--prefix", metavar="PREFIX", help="only those of this exactly-once query")
    describe = _command(actions, "describe", module, "describe", "state, task, waiting readers")
    describe.add_argument("transactions", metavar="ID", nargs="+", help="transactional ids")
    about = "abort a transaction without a decision; without --execute only show it"
    abort = _command(actions, "abort", module, "abort", about)
    abort.add_argument("transaction", metavar="ID", help="a transactional id")
    abort.add_argument("--producer-id", type=_number, metavar="N", required=True)
    abort.add_argument("--epoch", type=_number, metavar="N", required=True)
    abort.add_argument("--execute", action="store_true", help="do it")
    about = "commit an exactly-once query's last decision; without --execute only show it"
    finish = _command(actions, "finish", module, "finish_decided", about)
    finish.add_argument("prefix", metavar="PREFIX", help="of its transactional ids")
    finish.add_argument(
        "--accept-loss", action="store_true", help="let its next run go on without lost rows"
    )
    finish.add_argument("--execute", action="store_true", help="do it")


def _add_tail(commands: Any) -> None:
    about = "the newest records of a topic, or all records from a place on"
    tail = _command(commands, "tail", "tail", "tail", about)
    tail.add_argument("topic", metavar="TOPIC")
    begin = tail.add_mutually_exclusive_group()
    begin.add_argument("--from", dest="begin", metavar="WHERE", help=_FROM)
    begin.add_argument(
        "--group",
        metavar="GROUP",
        help="begin where this group has committed; the group is neither joined nor changed",
    )
    tail.add_argument(
        "-n",
        dest="count",
        type=_positive,
        metavar="COUNT",
        help="how many: of the newest (default 10), or of the first from --from or --group",
    )
    tail.add_argument(
        "--partition", type=int, action="append", metavar="N", help="only this one; may be repeated"
    )
    tail.add_argument("-f", "--follow", action="store_true", help="wait for more, until Ctrl-C")
    tail.add_argument("--key", choices=_FORMATS, default="text", help="how keys are shown")
    tail.add_argument("--value", choices=_FORMATS, default="text", help="how values are shown")


def _add_schema(commands: Any) -> None:
    about = "the columns of a topic's values as DDL, from the registry or from JSON records"
    schema = _command(commands, "schema", "schema", "schema", about)
    schema.add_argument("topic", metavar="TOPIC")
    schema.add_argument("--key", action="store_true", help="the columns of keys instead")
    schema.add_argument(
        "-n",
        dest="count",
        type=_positive,
        default=1_000,
        metavar="COUNT",
        help="how many of the newest JSON records to look at (default 1000)",
    )


def _add_produce(commands: Any) -> None:
    about = "write the lines of standard input to a topic, each as a record"
    produce = _command(commands, "produce", "produce", "produce", about, client="producer")
    produce.add_argument("topic", metavar="TOPIC")
    produce.add_argument(
        "--key-separator",
        type=_separator,
        metavar="TEXT",
        help="the text before the first separator is a line's key; '\\t' is a tab",
    )


def _add_doctor(commands: Any) -> None:
    about = "check the way to a cluster: network, TLS, login, rights, leaders, clocks"
    doctor = _command(commands, "doctor", "doctor", "doctor", about, client="consumer or producer")
    doctor.add_argument(
        "--topic", type=_named, metavar="T", help="its leaders, replicas and rights, too"
    )
    doctor.add_argument(
        "--group", type=_named, metavar="G", help="the right to use this group, too"
    )
    doctor.add_argument(
        "--transactional-id", type=_named, metavar="ID", help="the right to describe it, too"
    )
    doctor.add_argument("--registry", metavar="URL", help="a schema registry, too")
    about = "Spark, too: starts a session and a tiny job, in at most six times --timeout"
    doctor.add_argument("--spark", action="store_true", help=about)
    doctor.add_argument(
        "--timeout",
        type=_timeout_seconds,
        default=20,
        metavar="SECONDS",
        help="for all checks of the cluster, and half of it for the registry (default 20)",
    )


def _add_local_broker(commands: Any) -> None:
    about = "a real Kafka on this machine until Ctrl-C, to try things out; needs Java 17"
    broker = _parser(commands, "local-broker", "local_broker", "local_broker", about)
    broker.add_argument(
        "--brokers", type=_brokers, default=1, metavar="N", help="how many brokers (default 1)"
    )
    broker.add_argument(
        "--port",
        type=_port,
        metavar="PORT",
        help="of the first broker, the next ones follow; default: 9092, or any if it is in use",
    )
    broker.add_argument("--registry", action="store_true", help="a schema registry, too")
    broker.add_argument(
        "--topic",
        type=_new_topic,
        action="append",
        default=[],
        metavar="NAME[:PARTITIONS]",
        help="create this topic; may be repeated",
    )


def _brokers(text: str) -> int:
    count = _positive(text)
    if count > _MOST_BROKERS:
        raise argparse.ArgumentTypeError(f"at most {_MOST_BROKERS}")
    return count


def _new_topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.partition(":")
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise argparse.ArgumentTypeError("a name has letters, digits, '.', '_' and '-', up to 249")
    return name, _positive(partitions) if colon else 1


def _named(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a name is needed; an unset variable is empty")
    return text


def _timeout_seconds(text: str) -> int:
    seconds = _positive(text)
    if seconds > _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"at most {_MOST_SECONDS}")
    return seconds


def _separator(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it must not be empty")
    return text.replace("\\t", "\t")


def _number(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError("a whole number from 0 on is needed")
    return int(text)


def _positive(text: str) -> int:
    return _up_to(_MOST_NUMBER, text)


def _port(text: str) -> int:
    return _up_to(_MOST_PORT, text)


def _up_to(most: int, text: str) -> int:
    # Python refuses to read a number of thousands of digits.
    number = int(text) if re.fullmatch(r"0{0,99}\d{1,10}", text, re.ASCII) else 0
    if not 1 <= number <= most:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {most} is needed")
    return number


def _parser(actions: Any, name: str, module: str, function: str, about: str) -> Any:
    """Add a command that uses no cluster."""
    parser = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    parser.set_defaults(module=module, function=function)
    parser.set_defaults(client="consumer", bootstrap_servers=None, config=[], config_file=None)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def _command(
    actions: Any, name: str, module: str, function: str, about: str, *, client: str = "consumer"
) -> Any:
    parser = _parser(actions, name, module, function, about)
    parser.set_defaults(client=client)
    parser.add_argument(
        "-b", "--bootstrap-servers", "--bootstrap-server", metavar="HOST:PORT,...", help="brokers"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"a configuration of Kafka's {client}, by Kafka's name; passwords better in a file",
    )
    parser.add_argument(
        "--config-file", metavar="FILE", help="a client.properties, as Kafka's own tools take it"
    )
    return parser
