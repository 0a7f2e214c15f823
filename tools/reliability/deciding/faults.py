"""One fault at one step of a commit, and the rows that readers see in the end."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.client import CoordinatorKey, KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import Verdict, found_by_confluent, judge
from tests.exactly_once.query import Query, Run, client_of
from tests.exactly_once.steps import Step
from tools.reliability.leaders import make_whole
from tools.reliability.writing.gate import Gate

TASKS = 6
TOPIC_PARTITIONS = 6
# The longest timeout that brokers allow. Other tests are about transactions that time out.
TIMEOUT_MS = 900_000
_ASK_MS = 60_000
_MOST_RUNS = 10
_NODES = (1, 2, 3)
# Longer than a driver needs to ask the other brokers about a silent one.
_CUT_SECONDS = 6.0


class Role(Enum):
    """The role of the broker that has the fault."""

    CONTROL = "coordinator of the decision's transaction"
    GROUP = "coordinator of the decision's group"
    TASK = "coordinator of a task's transaction"
    LEADER = "leader of a partition with rows"


class Manner(Enum):
    """The fault of the broker, and perhaps of the driver."""

    KILLED = "killed"
    STOPPED = "stopped"
    WITH_DRIVER = "killed, and the driver with it"
    CUT = "cut off from the driver, for six seconds"
    DUEL = "killed, and a second driver goes on while this one stands still"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at the moment when a driver reaches a step."""

    role: Role
    manner: Manner
    step: Step

    def __str__(self) -> str:
        return f"the {self.role.value} is {self.manner.value}, {self.step.name.lower()}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of the commit, the number of further runs of the query, and what readers see."""

    commit: str
    runs: int
    verdict: Verdict


class DriverDeadError(Exception):
    """The test has killed the driver."""


class Trials:
    """Queries that write to one topic of three brokers, each with its own fault."""

    def __init__(self, kafka: LocalKafka, topic: str, gates: Sequence[Gate] = ()) -> None:
        """Create it. Each broker is behind one of the `gates`. Without them none is cut off."""
        self.kafka, self.topic, self._gates = kafka, topic, gates
        self.manners = [each for each in Manner if gates or each is not Manner.CUT]
        self.written: set[bytes] = set()
        kafka.create_topic(topic, TOPIC_PARTITIONS)

    def make(self, fault: Fault) -> Outcome:
        """Run a query with the fault in its second micro-batch."""
        query = Query(self.kafka.bootstrap_servers, self.topic, TOPIC_PARTITIONS)
        query.written, query.timeout_ms = self.written, TIMEOUT_MS
        run = query.start()
        run.commit(0, run.write(0, TASKS))
        winners = run.write(1, TASKS)
        with self._broker_of(fault.role, query, winners) as node_id, self._whole_again():
            ended = self._commit(run, winners, fault, node_id)
            runs = 0 if ended is None else _run_again(query)
            make_whole(self.kafka, self.topic)
        run = query.start()
        run.commit(2, run.write(2, TASKS))
        found = found_by_confluent(query.servers, self.topic, TOPIC_PARTITIONS)
        return Outcome(ended or "returned", runs, judge(found, self.written))

    def _commit(
        self, run: Run, winners: list[PreparedTransaction], fault: Fault, node_id: int
    ) -> str | None:
        """Commit with the fault. Return the error, or None. After an error abort, as Spark does."""
        strike = _once(fault.step, lambda: self._strike(fault.manner, node_id, run.query))
        try:
            run.commit(1, winners, strike)
        except DriverDeadError:
            return "the driver is dead"
        except KafkaError as error:
            with suppress(KafkaError):
                run.abort(1, winners)
            return type(error).__name__
        return None

    def _strike(self, manner: Manner, node_id: int, query: Query) -> None:
        broker = self.kafka.broker(node_id)
        if manner is Manner.CUT:
            self._gates[_NODES.index(node_id)].hold(_CUT_SECONDS)
        elif manner is Manner.STOPPED:
            broker.pause()
        else:
            broker.kill()
        if manner is Manner.WITH_DRIVER:
            raise DriverDeadError
        if manner is Manner.DUEL:
            _run_again(query)

    @contextmanager
    def _broker_of(
        self, role: Role, query: Query, winners: list[PreparedTransaction]
    ) -> Iterator[int]:
        with client_of(query.servers) as client:
            deadline = Deadline.after_ms(_ASK_MS)
            yield _node_of(client, role, query, winners, deadline)

    @contextmanager
    def _whole_again(self) -> Iterator[None]:
        try:
            yield
        finally:
            make_whole(self.kafka, self.topic)


def _node_of(
    client: KafkaClient,
    role: Role,
    query: Query,
    winners: list[PreparedTransaction],
    deadline: Deadline,
) -> int:
    if role is Role.LEADER:
        client.run(client.topics([query.topic], deadline))
        leader, _ = client.cluster.leader(query.where)
        return leader.node_id
    keys = {
        Role.CONTROL: CoordinatorKey.of_transaction(query.names.control_id),
        Role.TASK: CoordinatorKey.of_transaction(winners[0].transactional_id),
        Role.GROUP: CoordinatorKey.of_group(query.names.group_id(0)),
    }
    return client.run(client.coordinator(keys[role], deadline)).node_id


def _once(step: Step, strike: Callable[[], None]) -> Callable[[Step], None]:
    """Return a listener that strikes at the first step of this kind, in whichever thread."""
    lock = threading.Lock()
    left = [strike]

    def reached(found: Step) -> None:
        with lock:
            mine = left.pop() if found is step and left else None
        if mine is not None:
            mine()

    return reached


def _run_again(query: Query) -> int:
    """Start the query until its micro-batch is written. Return the number of runs."""
    for runs in range(1, _MOST_RUNS + 1):
        run = query.start()
        try:
            winners = run.write(1, TASKS)
        except KafkaError:
            continue
        try:
            run.commit(1, winners)
        except KafkaError:
            with suppress(KafkaError):
                run.abort(1, winners)
        else:
            return runs
    raise AssertionError(f"the micro-batch is not written after {_MOST_RUNS} runs")
