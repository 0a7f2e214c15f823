"""One round: blows that a seed draws, runs of a query under them, and the rows that readers see."""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from confluent_kafka import KafkaException, Producer

from spark_kafka_source.admin.transactions import ONGOING, abort_transaction, describe_transactions
from spark_kafka_source.client import CoordinatorKey
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError
from spark_kafka_source.exactly_once.repair import finish
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import PreparedTransaction
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.errors import ToolError
from tests.exactly_once.judge import found_by_confluent, judge
from tests.exactly_once.query import Query, Run, client_of
from tests.exactly_once.steps import Step
from tools.reliability.leaders import make_whole
from tools.reliability.writing.cluster import behind_gates
from tools.reliability.writing.gate import Gate
from tools.traffic import wait_until

TASKS = 4
PARTITIONS = 6
BATCHES = 3
# The longest timeout that brokers allow.
TIMEOUT_MS = 900_000
_SHORT_MS = 20_000
_PROPERTIES = {
    "transactional.id.expiration.ms": "30000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
_ASK_SECONDS = 60
_MOST_RUNS = 10
_OTHERS_TOPIC = "others"
# Longer than a driver needs to ask the other brokers about a silent one.
_CUT_SECONDS = 6.0
_WORKER_SECONDS = 4.0


class Role(Enum):
    """The role of the broker that has the fault."""

    CONTROL = "coordinator of the decision's transaction"
    GROUP = "coordinator of the decision's group"
    TASK = "coordinator of a task's transaction"
    LEADER = "leader of a partition with a task's rows"


class Manner(Enum):
    """What happens to a broker. It comes back after the run, or before another one goes away."""

    WELL = "no broker has a fault"
    KILLED = "a broker is killed"
    STOPPED = "a broker stands still for longer than its session"
    CUT = "a broker is cut off for six seconds"
    TWO = "two brokers are killed, and start again"


class Process(Enum):
    """What happens to a process of the query."""

    GOES_ON = "the query's processes go on"
    DIES = "the driver dies"
    STANDS_STILL = "the driver stands still until another run has written all"
    WORKER = "a worker's process is killed, and another one writes all tasks again"


class Other(Enum):
    """What others do to the batch's transactions, to all of them or to one, or what time does."""

    NOBODY = "nobody touches the transactions"
    TAKE = "another producer takes {}, and commits a transaction of its own"
    TERMINATE = "`kafka-transactions.sh forceTerminateTransaction` for {}"
    ABORT = "EndTxn with an abort for {}"
    TIME_OUT = "the open transactions time out"
    EXPIRE = "the ids without an open transaction expire"


@dataclass(frozen=True, slots=True)
class Blow:
    """What happens in one run of the query, as its driver reaches a step of a commit."""

    step: Step | None
    """None: before the run begins."""
    role: Role
    manner: Manner
    process: Process
    other: Other
    is_for_all: bool

    @property
    def labels(self) -> list[str]:
        other = self.other.value.format("all ids" if self.is_for_all else "one id")
        return [self.manner.value, self.process.value, other]

    def __str__(self) -> str:
        step = self.step.name.lower() if self.step else "before the run"
        return f"{step}: {'; '.join(self.labels)} ({self.role.value})"


def drawn(seed: int) -> list[Blow]:
    """Return the blows of a round: one for the first run, and perhaps one for the second."""
    draw = Random(seed).choice
    blows: list[Blow] = []
    for steps in ([*Step], [None, *Step]):
        step, role, manner = draw(steps), draw([*Role]), draw([*Manner])
        process = draw([*Process, Process.DIES, Process.STANDS_STILL])
        process = process if step else Process.GOES_ON
        blows.append(Blow(step, role, manner, process, draw([*Other]), draw([True, False])))
    return blows[: draw([1, 2])]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a round. The counts of rows are without those that errors name as lost."""

    seed: int
    labels: list[str]
    """What has happened."""
    ends: list[str]
    """The ends of runs by an error."""
    named: int
    """Rows that errors name as lost. They must be missing."""
    lost: int
    doubled: int
    held_up: int
    wrong: str
    """What is wrong besides the rows."""

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.held_up or self.wrong)


class DriverDeadError(Exception):
    """The test has killed the driver."""


@dataclass
class Round:
    """A query on a topic of its own, with its commit log."""

    kafka: LocalKafka
    gates: Sequence[Gate]
    query: Query
    blows: list[Blow]
    """Those to come, each for the second micro-batch of one run."""
    struck: list[Blow] = field(default_factory=list)
    next_batch: int = 0
    winners: list[PreparedTransaction] = field(default_factory=list)
    """Those of the last commit that began."""
    rows: dict[tuple[int, str], list[bytes]] = field(default_factory=dict)
    """The rows of each transaction, by its micro-batch and its id."""
    named: set[bytes] = field(default_factory=set)
    ends: list[str] = field(default_factory=list)

    def go_on(self, until: int = BATCHES) -> None:
        """Start the query until it has written so many micro-batches."""
        for _ in range(_MOST_RUNS):
            if self.next_batch >= until:
                return
            times_out = any(each.other is Other.TIME_OUT for each in self.blows)
            self.query.timeout_ms = _SHORT_MS if times_out else TIMEOUT_MS
            blow = self.blows.pop(0) if self.blows else None
            if blow and not blow.step:
                self._strike(blow)
            self._run(self.query.start(), blow, until)
            if blow:
                make_whole(self.kafka, self.query.topic)
        raise AssertionError(f"only {self.next_batch} micro-batches after {_MOST_RUNS} runs")

    def _run(self, run: Run, blow: Blow | None, until: int) -> None:
        """Run the query to its end or its error. After an error abort, as Spark does."""
        winners: list[PreparedTransaction] = []
        batch_id = self.next_batch
        left: list[Blow] = []

        def reached(step: Step) -> None:
            if left and left[0].step is step:
                self._strike(left.pop())

        try:
            while (batch_id := self.next_batch) < until:
                left = [blow] if blow and batch_id == 1 else []
                if left and left[0].process is Process.WORKER:
                    _kill_worker(run, batch_id)
                winners = self.winners = run.write(batch_id, TASKS)
                for task, each in enumerate(winners):
                    key = batch_id, each.transactional_id
                    self.rows[key] = self.query.values(batch_id, task)
                run.commit(batch_id, winners, reached)
                self.next_batch = max(self.next_batch, batch_id + 1)
        except DriverDeadError:
            self.ends.append("the driver is dead")
        except KafkaError as error:
            self.ends.append(type(error).__name__)
            with suppress(KafkaError):
                run.abort(batch_id, winners)
            if isinstance(error, DecidedRowsLostError):
                self._give_up(error)

    def _give_up(self, error: DecidedRowsLostError) -> None:
        """Go on without the rows that an error names, as the error says how."""
        for transactional_id in (each for ids in error.found.values() for each in ids):
            self.named |= {*self.rows[error.batch.batch_id, transactional_id]}
        make_whole(self.kafka, self.query.topic)
        with client_of(self.query.servers) as client:
            finish(client, self.query.names, accept_loss=True)

    def _strike(self, blow: Blow) -> None:
        self.struck.append(blow)
        self._fault(blow.manner, self._node_of(blow.role))
        try:
            if blow.other in (Other.TIME_OUT, Other.EXPIRE):
                wait_until(lambda: self._is_over(blow.other))
            for each in self.winners if blow.is_for_all else self.winners[-1:]:
                self._act(blow.other, each)
        except (KafkaError, KafkaException, ToolError, AssertionError) as error:
            print(error)
            self.ends.append(f"{blow.other.name} could not be done")
        if blow.process is Process.DIES:
            raise DriverDeadError
        if blow.process is Process.STANDS_STILL:
            self.go_on()

    def _fault(self, manner: Manner, node_id: int) -> None:
        if manner is Manner.WELL:
            return
        make_whole(self.kafka, self.query.topic)  # One is away at a time, or all take very long.
        broker = self.kafka.broker(node_id)
        if manner is Manner.CUT:
            self.gates[node_id - 1].hold(_CUT_SECONDS)
        elif manner is Manner.STOPPED:
            broker.pause()
        else:
            broker.kill()
        if manner is Manner.TWO:
            self.kafka.broker(node_id % 3 + 1).kill()
            self.kafka.start()

    def _act(self, other: Other, winner: PreparedTransaction) -> None:
        name = winner.transactional_id
        if other is Other.TAKE:
            _take(self.query.servers, name)
        elif other is Other.TERMINATE:
            self.kafka.tool("transactions", "forceTerminateTransaction", "--transactionalId", name)
        elif other is Other.ABORT:
            # An error says that it has ended already.
            with client_of(self.query.servers) as client, suppress(KafkaError):
                client.run(abort_transaction(client, name, winner.producer))

    def _is_over(self, other: Other) -> bool:
        """Whether no transaction is open; or, of expired ids, whether no other id is known."""
        ids = [each.transactional_id for each in self.winners]
        if other is Other.EXPIRE:
            ids.append(self.query.names.control_id)
        with client_of(self.query.servers) as client:
            states = client.run(describe_transactions(client, ids)).values()
        is_open = [each.state == ONGOING for each in states if each is not None]
        return all(is_open) if other is Other.EXPIRE else not any(is_open)

    def _node_of(self, role: Role) -> int:
        names, last = self.query.names, self.winners[-1]
        keys = {
            Role.CONTROL: CoordinatorKey.of_transaction(names.control_id),
            Role.TASK: CoordinatorKey.of_transaction(last.transactional_id),
            Role.GROUP: CoordinatorKey.of_group(names.group_id(0)),
        }
        with client_of(self.query.servers) as client:
            deadline = Deadline.after_ms(1000 * _ASK_SECONDS)
            if role is not Role.LEADER:
                return client.run(client.coordinator(keys[role], deadline)).node_id
            assert last.place is not None
            where = last.place.topic_partition
            return client.run(client.leaders([where], deadline))[where][0].node_id


@contextmanager
def brokers() -> Iterator[tuple[LocalKafka, Sequence[Gate]]]:
    """Yield three brokers, each behind a gate, for the time of the context."""
    with behind_gates(Random(), 3, properties=_PROPERTIES) as (kafka, gates):
        kafka.create_topic(_OTHERS_TOPIC)
        yield kafka, gates


def make(kafka: LocalKafka, gates: Sequence[Gate], seed: int, blows: Sequence[Blow]) -> Outcome:
    """Run a query to its end under blows."""
    topic = f"rows-{seed}"
    kafka.create_topic(topic, PARTITIONS)
    query = Query(kafka.bootstrap_servers, topic, PARTITIONS)
    made = Round(kafka, gates, query, [*blows])
    wrong = ""
    try:
        made.go_on()
        made.go_on(BATCHES + 1)
    except (AssertionError, KafkaError) as error:
        wrong = f"{type(error).__name__}: {error}. "
    if made.named and {each.other for each in made.struck} <= {Other.NOBODY, Other.EXPIRE}:
        wrong += "rows are lost, and nobody has aborted a transaction"
    make_whole(kafka, topic)
    found = found_by_confluent(query.servers, topic, PARTITIONS)
    kafka.delete_topic(topic)
    labels = sorted({each for blow in made.struck for each in blow.labels})
    verdict = judge(found, query.written - made.named)
    seen = verdict.lost, verdict.doubled, verdict.held_up
    return Outcome(seed, labels, made.ends, len(made.named), *seen, wrong)


def _take(servers: str, transactional_id: str) -> None:
    settings = {"bootstrap.servers": servers, "transactional.id": transactional_id, "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(_ASK_SECONDS)
    producer.begin_transaction()
    producer.produce(_OTHERS_TOPIC, b"")
    producer.commit_transaction(_ASK_SECONDS)


def _kill_worker(run: Run, batch_id: int) -> None:
    """Kill a worker's process. It may have written no task, or some of them, or all."""
    arguments = run.query, run.run_id, batch_id
    process = multiprocessing.get_context("spawn").Process(target=_work, args=arguments)
    process.start()
    process.join(Random(run.run_id).uniform(1, _WORKER_SECONDS))
    process.kill()
    process.join()


def _work(query: Query, run_id: str, batch_id: int) -> None:
    Run(query, run_id).write(batch_id, TASKS)
    time.sleep(_ASK_SECONDS)
