"""Every fault for every client, some rounds of each, and the tables: see the package's docstring.

    python -m tools.reliability.deaf [--rounds N] [--only WORD] [--page PATH]

`--page` also writes the tables into a page. `--only` makes the faults with the word in their names.
A round takes some ten minutes, mostly for clients that wait for their timeouts.
"""

import argparse
import datetime
import os
import platform
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.jars import KAFKA_VERSION
from tools.benchmarks.session import session
from tools.marks import Marks
from tools.reliability.deaf.clients import ALL, JAVA, OURS, THEIRS, Client
from tools.reliability.deaf.deleted import deleted, deleted_under_assign
from tools.reliability.deaf.first_contact import first_contact
from tools.reliability.deaf.frozen import ROLES, frozen
from tools.reliability.deaf.others import others
from tools.reliability.deaf.outcome import Outcome
from tools.reliability.deaf.pattern import new_topic
from tools.reliability.deaf.running import PATIENCE_SECONDS
from tools.reliability.deaf.sockets import dropping, silent
from tools.reliability.deaf.table import LEAST_FOR_A_MEDIAN, render, render_took

MARKS = Marks("<!-- deaf brokers: written by a program -->", "<!-- end of deaf brokers -->")

BY_HAND = (OURS, THEIRS, JAVA)
"""Clients of tests without a group, where the two protocols do not matter."""
Scenario = Callable[[LocalKafka], Sequence[Outcome]]


@contextmanager
def healthy() -> Iterator[None]:
    """Yield None: there is no bad address."""
    yield


FIRST_ADDRESSES = {
    "the first address is a broker's": healthy,
    "the first address drops connection attempts": dropping,
    "the first address takes connections and is silent": silent,
}


def main() -> None:
    arguments = _arguments()
    found: dict[str, list[Outcome]] = defaultdict(list)
    took: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    spark = session()
    with LocalKafka(3) as kafka:
        for _ in range(arguments.rounds):
            for fault, scenario in _scenarios().items():
                if arguments.only in fault:
                    for outcome in scenario(kafka):
                        told = (fault, outcome.client.name, outcome, *outcome.errors[:3])
                        print(*told, sep="; ", flush=True)
                        found[fault].append(outcome)
            for fault in FIRST_ADDRESSES:
                if arguments.only in f"{fault}, others":
                    for way, seconds in _others(fault, spark, kafka).items():
                        took[fault][way].append(seconds)
    tables = [render(found, ALL, PATIENCE_SECONDS), render_took(took)]
    text = "\n\n".join([_about(spark, arguments.rounds), *tables])
    spark.stop()
    print(text)
    if arguments.page:
        MARKS.write(arguments.page, text)


def _scenarios() -> Mapping[str, Scenario]:
    made: dict[str, Scenario] = {}
    for fault in FIRST_ADDRESSES:
        made[f"{fault}; in a group"] = partial(_contact, fault, in_group=True)
        made[f"{fault}; alone"] = partial(_contact, fault, in_group=False)
    for role in ROLES:
        made[f"the {role} is stopped"] = partial(_frozen, role)
    made["a topic is deleted under two members"] = partial(_at_once, deleted, ALL)
    made["a topic is deleted under `assign`"] = partial(_at_once, deleted_under_assign, BY_HAND)
    made["a topic that a pattern matches is made"] = partial(_at_once, _new_topic, ALL)
    return made


def _servers(kafka: LocalKafka, bad: str | None) -> str:
    addresses = [bad, *(each.bootstrap_servers for each in kafka.brokers)]
    return ",".join(filter(None, addresses))


def _contact(fault: str, kafka: LocalKafka, *, in_group: bool) -> Sequence[Outcome]:
    with FIRST_ADDRESSES[fault]() as bad:
        clients = ALL if in_group else BY_HAND
        return first_contact(kafka, _servers(kafka, bad), clients, in_group=in_group)


def _others(fault: str, spark: SparkSession, kafka: LocalKafka) -> Mapping[str, float]:
    with FIRST_ADDRESSES[fault]() as bad:
        return others(kafka, _servers(kafka, bad), spark)


def _frozen(role: str, kafka: LocalKafka) -> Sequence[Outcome]:
    return frozen(kafka, role, ALL)


def _new_topic(kafka: LocalKafka, client: Client) -> Outcome:
    outcome, _ = new_topic(kafka, client)
    return outcome


def _at_once(
    act: Callable[[LocalKafka, Client], Outcome], clients: Sequence[Client], kafka: LocalKafka
) -> Sequence[Outcome]:
    """Make the fault for each client, with its own topics, all at the same time."""
    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(partial(act, kafka), clients))


def _about(spark: SparkSession, rounds: int) -> str:
    today = datetime.date.today()
    shown = "Worst" if rounds < LEAST_FOR_A_MEDIAN else "Median (worst)"
    return (
        f"{shown} of {rounds} rounds, {today.day} {today:%B %Y}: spark_kafka_source "
        f"{version('spark-kafka-source')}, Kafka {KAFKA_VERSION} and its Java consumer, "
        f"confluent-kafka {version('confluent-kafka')}, Spark {spark.version}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores. Written by `python -m "
        f"tools.reliability.deaf --rounds {rounds} "
        "--page docs/contributors/measured/deaf-brokers.md`."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
