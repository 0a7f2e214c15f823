"""All orders in which processes take their steps, and what must hold after each step.

A state is the state of the brokers and of Spark, and the place of each process in its steps. Two
processes that stand at the same place with the same variables go on alike, and one is enough. What
a process does next is found by running its steps again with the answers so far.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from spark_kafka_source.exactly_once.leases import Owner

from spark_kafka_source.errors import KafkaError, KafkaTimeoutError
from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Decision,
    LastDecisions,
    StoredDecision,
)
from spark_kafka_source.exactly_once.driver import Driver
from spark_kafka_source.exactly_once.errors import DecidedRowsLostError, OtherDriverError
from spark_kafka_source.exactly_once.requests import Answered, EndTxn, InitProducerId
from spark_kafka_source.exactly_once.slots import Slot, Slots
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.explorer import brokers as model
from tests.exactly_once.explorer.brokers import LONG_MS, Brokers, WrongError
from tests.exactly_once.explorer.spark import (
    NOTES,
    TASKS,
    Await,
    Collect,
    Go,
    Happens,
    LogCommit,
    Note,
    Parts,
    Produce,
    Report,
    Start,
    TakeLease,
    driver,
    worker,
)

_PLAIN = {int, str, bool, type(None)}
_SILENT = KafkaTimeoutError("no answer")
_OPEN = object()
"""In place of an answer that has not come."""


class Leased(NamedTuple):
    """The file of a lease."""

    owner: int
    holder: str
    """The process that has locked it; empty if that is dead."""
    notes: tuple[ProducerId | None, ...] = ()


class Spark(NamedTuple):
    """The checkpoint, and what Spark knows of its runs."""

    batches: int
    rows: int
    writes: tuple[str, ...]
    logged: int = -1
    """The last micro-batch in the commit log."""
    at: tuple[tuple[str, tuple[int, int]], ...] = ()
    """The micro-batch of each run, and the place of its present write."""
    reports: frozenset[Report] = frozenset()
    swallowed: frozenset[tuple[int, str]] = frozenset()
    """Writes whose error was swallowed before anything was decided: they are not written."""
    faults: tuple[tuple[str, int], ...] = ()
    """How many more faults of each kind may happen."""
    leases: tuple[Leased, ...] = ()
    may_lose: bool = False
    """Whether rows may be lost, with an error: a long time has passed amid the ends of a decision,
    or after code has swallowed an error."""


class State(NamedTuple):
    """All of it."""

    brokers: Brokers
    spark: Spark
    processes: tuple[tuple[int, tuple[Any, ...]], ...]
    """The place of each process in its steps, and the answers that it has to its last requests."""


@dataclass(slots=True, eq=False)
class Place:
    """A place in steps: the answers until then, and what is asked there."""

    steps: Callable[[], Any]
    answers_so_far: tuple[tuple[tuple[Any, ...], int], ...]
    requests: tuple[Any, ...] = ()
    result: Any = None
    notes: tuple[Note, ...] = ()
    """What the process has noted on its way to this place."""
    is_ghost: bool = False
    """Whether the process is dead. Its requests may still arrive."""
    following: dict[Any, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is explored: who runs, how long, and which faults may happen."""

    generation: Generation = Generation.SECOND
    runs: int = 2
    batches: int = 1
    written: int = 0
    """So many micro-batches have been written before."""
    rows: int = 1
    writes: tuple[str, ...] = ("t",)
    faults: Mapping[str, int] = field(default_factory=dict)
    """`long` times, `memory` that is lost, another process of the driver whose `turn` it is,
    errors that code may `swallow`, attempts of a `worker` that die, answers that are `lost`,
    fences that are `repeated` after a lost answer, the `death` of a worker's process, whose last
    requests may still arrive, and which another process follows."""
    timeout_bumps: int = 1
    most_states: int = 10_000_000


class FoundError(Exception):
    """An order of steps that breaks the protocol."""


class Explorer:
    """One exploration of a scenario."""

    def __init__(self, scenario: Scenario, **parts: Any) -> None:
        """`parts` replace those of `Parts`."""
        self._scenario = scenario
        self._parts = Parts(scenario.generation, scenario.rows, scenario.writes, **parts)
        self._places: list[Place] = []
        self._numbers: dict[Any, int] = {}
        self._judged: set[tuple[Brokers, Spark]] = set()
        self.outcomes: Counter[str] = Counter()
        self.states = 0

    def explore(self) -> None:
        """Take all steps from all states. Raises `FoundError`."""
        scenario = self._scenario
        runs = [f"r{number}" for number in range(scenario.runs)]
        begun = tuple((self._begin(each), ()) for run in runs for each in self._processes(run))
        last = scenario.written - 1
        faults = tuple(sorted(scenario.faults.items()))
        spark = Spark(scenario.batches, scenario.rows, scenario.writes, last, faults=faults)
        brokers = Brokers(scenario.generation, scenario.timeout_bumps)
        if scenario.written:
            decided = Decision(BatchId("q", "former", last), ())
            stored = tuple(
                StoredDecision(TopicPartition(each, 0), replace(decided, write=each))
                for each in scenario.writes
            )
            read = tuple(sorted(_rows(spark, scenario.written)))
            brokers = brokers._replace(decisions=LastDecisions(stored), read=read)
        first = State(brokers, spark, begun)
        seen: dict[State, tuple[State | None, Any]] = {first: (None, "")}
        left = [first]
        while left and len(seen) < scenario.most_states:
            state = left.pop()
            try:
                self._judge(state)
                for text, after in self._steps(state):
                    if after not in seen:
                        seen[after] = state, text
                        left.append(after)
            except WrongError as error:
                raise FoundError(f"{error}\n{_trace(seen, state)}") from error
        self.states = len(seen)

    # -- steps -------------------------------------------------------------------------------------

    def _steps(self, state: State) -> Iterator[tuple[Any, State]]:
        """Each step that may come next. One that nobody else can notice is the only one."""
        for number, (place, _) in enumerate(state.processes):
            requests = self._places[place].requests
            if (
                requests
                and not self._places[place].is_ghost
                and _is_unnoticed(requests[0], state.spark)
            ):
                found = list(self._steps_of(state, number))
                if found:
                    return iter(found)
        return self._noticed(state)

    def _noticed(self, state: State) -> Iterator[tuple[Any, State]]:
        for number in range(len(state.processes)):
            yield from self._steps_of(state, number)
            yield from self._deaths(state, number)
        ending = any(
            isinstance(each, EndTxn)
            and each.commit
            and model.NAMES.is_task_id(each.transactional_id)
            for place, _ in state.processes
            for each in self._places[place].requests
        )
        for text, brokers, spark in _times(state.brokers, state.spark, is_ending=ending):
            yield text, State(brokers, spark, state.processes)

    def _steps_of(self, state: State, number: int) -> Iterator[tuple[Any, State]]:
        brokers, spark, processes = state
        place, answers = processes[number]
        requests = self._places[place].requests
        got = answers or (_OPEN,) * len(requests)
        for which, request in enumerate(requests):
            if got[which] is not _OPEN:
                continue
            for text, brokers2, spark2, answer in _answers(brokers, spark, request):
                all_answers = (*got[:which], answer, *got[which + 1 :])
                process = self._after(place, all_answers, brokers2.now_ms)
                notes = () if process[1] else self._places[process[0]].notes
                noted = _noted(spark2, notes)
                self._check_result(process[0], noted)
                after = (*processes[:number], process, *processes[number + 1 :])
                yield (number, text), State(brokers2, noted, after)

    def _deaths(self, state: State, number: int) -> Iterator[tuple[Any, State]]:
        """A worker's process dies. Its last requests may still arrive. Another process follows."""
        run, place = divmod(number, 1 + TASKS)
        number_of, answers = state.processes[number]
        requests = self._places[number_of].requests
        spark = _less(state.spark, "death")
        is_alive = requests and not self._places[number_of].is_ghost
        if spark is None or run >= self._scenario.runs or not place or not is_alive:
            return
        run_id, task = f"r{run}", place - 1
        sent = tuple(
            each
            for each, answer in zip(requests, answers or (_OPEN,) * len(requests), strict=True)
            if answer is _OPEN and isinstance(each, Produce | InitProducerId | EndTxn)
        )
        ghost = self._add(Place(partial(_ghost, sent), (), is_ghost=True))
        if isinstance(requests[0], Await):
            after = requests[0].after
        else:
            batch_id, write = dict(spark.at)[run_id]
            after = batch_id, write - 1
        follower = self._begin(partial(worker, run_id, task, self._parts, after, 1))
        dead = f"{run_id}.{task}.0"
        leases = tuple(
            each._replace(holder="") if each.holder == dead else each for each in spark.leases
        )
        processes = (*state.processes[:number], (ghost, ()), *state.processes[number + 1 :])
        yield (
            (number, "dies"),
            State(state.brokers, spark._replace(leases=leases), (*processes, (follower, ()))),
        )

    # -- places in steps ---------------------------------------------------------------------------

    def _processes(self, run_id: str) -> list[Callable[[], Any]]:
        workers = [partial(worker, run_id, task, self._parts) for task in range(TASKS)]
        return [partial(driver, run_id, self._parts), *workers]

    def _begin(self, steps: Callable[[], Any]) -> int:
        return self._add(Place(steps, ()))

    def _add(self, place: Place) -> int:
        """Run steps up to a place, and return its number. Equal places have one number."""
        running = place.steps()
        try:
            NOTES.clear()
            requests = next(running)
            for answers, now_ms in place.answers_so_far:
                errors = [
                    each
                    for each, request in zip(answers, requests, strict=True)
                    if isinstance(each, KafkaError) and not isinstance(request, EndTxn | Produce)
                ]
                NOTES.clear()
                if errors:
                    errors[0].__context__ = errors[0].__traceback__ = None
                    requests = running.throw(errors[0])
                else:
                    requests = running.send(Answered(answers, now_ms))
            place.requests = tuple(requests)
        except StopIteration as end:
            place.result = end.value
        place.notes = tuple(NOTES)
        here = repr(place.result) if not place.requests else (place.requests, *_frames(running))
        key = here, place.notes
        if key not in self._numbers:
            self._numbers[key] = len(self._places)
            self._places.append(place)
        return self._numbers[key]

    def _after(self, place: int, answers: tuple[Any, ...], now_ms: int) -> tuple[int, Any]:
        """Return the place and answers of a process after one more answer."""
        if _OPEN in answers:
            return place, answers
        here = self._places[place]
        key = answers, now_ms
        if key not in here.following:
            answers_so_far = (*here.answers_so_far, (answers, now_ms))
            here.following[key] = self._add(Place(here.steps, answers_so_far))
        return here.following[key], ()

    def _check_result(self, place: int, spark: Spark) -> None:
        result = self._places[place].result
        if isinstance(result, KafkaError):
            self.outcomes[type(result).__name__] += 1
        is_alone = self._scenario.runs == 1 and self._scenario.faults.keys() <= {"repeated", "turn"}
        if isinstance(result, OtherDriverError) and is_alone:
            raise WrongError(f"there is no other driver, and: {result}")
        if isinstance(result, DecidedRowsLostError) and not spark.may_lose:
            raise WrongError(f"nothing can be lost, and: {result}")

    # -- the end -----------------------------------------------------------------------------------

    def _judge(self, state: State) -> None:
        """Let all processes be dead, and run the query again: all rows are read once.

        Only if a long time has passed, rows may be lost, with an error.
        """
        leases = tuple(each._replace(holder="") for each in state.spark.leases)
        spark = state.spark._replace(reports=frozenset(), faults=(), at=(), leases=leases)
        key = state.brokers, spark
        if key in self._judged:
            return
        self._judged.add(key)
        brokers, spark = key
        # One more micro-batch, so that the last one is settled, too.
        spark = spark._replace(batches=spark.batches + 1)
        trace: list[Any] = []
        for run in ("judge", "judge2"):
            processes = tuple((self._begin(each), ()) for each in self._processes(run))
            found = State(brokers, spark, processes)
            while step := next(self._steps_of_processes(found), None):
                trace.append(step[0])
                found = step[1]
            brokers, spark = found.brokers, found.spark._replace(reports=frozenset(), at=())
            error = self._places[found.processes[0][0]].result
            if not isinstance(error, KafkaError):
                break
            if not brokers.now_ms or isinstance(error, DecidedRowsLostError):
                break
        if isinstance(error, DecidedRowsLostError) and spark.may_lose:
            self.outcomes["judge: lost, with an error"] += 1
            return
        text = "\n".join(map(str, trace))
        if isinstance(error, KafkaError):
            raise WrongError(f"the next run has failed: {error}\n{text}")
        expected = _rows(spark, spark.batches)
        if not expected <= set(brokers.read):
            raise WrongError(f"rows are missing: {sorted(expected - set(brokers.read))}\n{text}")
        left = [name for name, each in brokers.transactions if each.state == "Ongoing"]
        if left:
            raise WrongError(f"readers are held up by {left}\n{text}")

    def _steps_of_processes(self, state: State) -> Iterator[tuple[Any, State]]:
        return (each for each in self._steps(state) if isinstance(each[0], tuple))


def _frames(running: Any) -> Iterator[Any]:
    """Return where steps and those within them stand, and what their variables hold."""
    while running is not None:
        frame = running.gi_frame
        yield frame.f_code, frame.f_lasti, _plain(dict(frame.f_locals))
        running = running.gi_yieldfrom


def _plain(value: Any) -> Any:
    """Return a value that is equal if and only if the variables are."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return tuple((name, _plain(each)) for name, each in value.items())
    if isinstance(value, KafkaError):
        return repr(value)
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, set | frozenset):
        return frozenset(map(_plain, value))
    if isinstance(value, Driver):
        return _plain(vars(value))
    if isinstance(value, Slots | Slot | Owner):
        names = Slot.__slots__ if isinstance(value, Slot) else []
        return _plain({each: getattr(value, each) for each in names} or vars(value))
    return value


def _ghost(requests: tuple[Any, ...]) -> Any:
    """The requests that a process has sent before its end."""
    if requests:
        yield requests


def _with(asked: tuple[Brokers, Any], spark: Spark) -> tuple[Brokers, Spark, Any]:
    return asked[0], spark, asked[1]


Answers = Iterator[tuple[Any, Brokers, Spark, Any]]


def _answers(brokers: Brokers, spark: Spark, request: Any) -> Answers:
    """Each possible answer to a request; none while the process has to wait."""
    match request:
        case Start() | Go() | Await() | Report() | Collect() | LogCommit() | TakeLease():
            for spark2, answer in _spark_answers(brokers, spark, request):
                yield request, brokers, spark2, answer
        case Happens(fault):
            yield request, brokers, spark, False
            if (less := _less(spark, fault)) is not None:
                may_lose = spark.may_lose or fault == "swallow"
                yield ("yes", request), brokers, less._replace(may_lose=may_lose), True
        case Produce(transactional_id, producer, row):
            found = model.produce(brokers, transactional_id, producer, row)
            yield request, *_with(found, spark)
        case _:
            asked = model.ask(brokers, request)
            yield (request, asked[1]), *_with(asked, spark)
            if (less := _less(spark, "lost")) is not None:
                yield (request, "the answer is lost"), asked[0], less, _SILENT
                yield (request, "lost"), brokers, less, _SILENT
            is_fence = request == InitProducerId(model.NAMES.control_id)
            if is_fence and (less := _less(spark, "repeated")) is not None:
                yield (request, "repeated"), *_with(model.ask(asked[0], request), less)


def _spark_answers(brokers: Brokers, spark: Spark, request: Any) -> Iterator[tuple[Spark, Any]]:
    match request:
        case Start(run_id, after):
            batch_id = spark.logged + 1 if after is None else after + 1
            if batch_id >= spark.batches:
                yield spark, None
                return
            yield _at(spark, run_id, (batch_id, 0)), batch_id
        case Go(run_id, at):
            yield _at(spark, run_id, at), None
        case Await(run_id, after):
            at = dict(spark.at).get(run_id, after)
            if at > after:
                yield spark, at
        case Collect(run_id, batch_id, write):
            wanted = run_id, batch_id, write
            mine = [e for e in spark.reports if (e.run_id, e.batch_id, e.write) == wanted]
            if len(mine) == TASKS:
                found = tuple(sorted(mine, key=lambda each: each.task))
                yield spark._replace(reports=spark.reports.difference(mine)), found
        case Report():
            yield spark._replace(reports=spark.reports | {request}), None
        case TakeLease(holder, new, is_shared):
            yield _leased(spark, holder, new, is_shared=is_shared)
        case LogCommit(_, batch_id, swallowed):
            yield _logged(brokers, spark, batch_id, swallowed), None


def _at(spark: Spark, run_id: str, at: tuple[int, int]) -> Spark:
    return spark._replace(at=tuple(sorted((dict(spark.at) | {run_id: at}).items())))


def _leased(
    spark: Spark, holder: str, new: int, *, is_shared: bool
) -> tuple[Spark, tuple[int, tuple[ProducerId | None, ...]]]:
    free = [each for each in spark.leases if is_shared or not each.holder]
    while not free and new in {each.owner for each in spark.leases}:
        new += 1 << 40
    found = free[0] if free else Leased(new, holder)
    return _with_lease(spark, found._replace(holder=holder)), (found.owner, found.notes)


def _noted(spark: Spark, notes: Iterable[Note]) -> Spark:
    for owner, slot, producer in notes:
        (lease,) = [each for each in spark.leases if each.owner == owner]
        after = (*lease.notes[:slot], producer, *lease.notes[slot + 1 :])
        spark = _with_lease(spark, lease._replace(notes=after))
    return spark


def _with_lease(spark: Spark, lease: Leased) -> Spark:
    leases = {each.owner: each for each in spark.leases} | {lease.owner: lease}
    return spark._replace(leases=tuple(leases[each] for each in sorted(leases)))


def _is_unnoticed(request: Any, spark: Spark) -> bool:
    """Whether a step makes no difference to other processes, and theirs make none to it."""
    match request:
        case Go() | Await() | Report() | Collect():
            return True
        case Start(_, after):
            return after is not None and _less(spark, "long") is None
        case TakeLease():
            return "death" not in dict(spark.faults)
        case Happens(fault):
            return _less(spark, fault) is None
        case InitProducerId(
            transactional_id
        ):  # Nobody else knows a task's id before its first row.
            is_noticed = _less(spark, "lost") or _less(spark, "death")
            return transactional_id != model.NAMES.control_id and not is_noticed
    return False


def _less(spark: Spark, fault: str) -> Spark | None:
    """Return Spark with one fault of this kind less to come; None if there is none left."""
    faults = dict(spark.faults)
    if not faults.get(fault):
        return None
    faults[fault] -= 1
    return spark._replace(faults=tuple(sorted(faults.items())))


def _times(
    brokers: Brokers, spark: Spark, *, is_ending: bool
) -> Iterator[tuple[str, Brokers, Spark]]:
    """A long time passes, or a broker aborts a transaction that is out of time."""
    if (less := _less(spark, "long")) is not None:
        half_done = any(_is_half_done(brokers, each) for _, each in brokers.decisions.stored)
        may_lose = is_ending or half_done or spark.may_lose
        later = brokers._replace(now_ms=brokers.now_ms + LONG_MS)
        yield "a long time passes", later, less._replace(may_lose=may_lose)
    for transactional_id, found in brokers.transactions:
        if brokers.is_due(found):
            text = f"{transactional_id} times out"
            yield text, model.time_out(brokers, transactional_id), spark


def _is_half_done(brokers: Brokers, decision: Decision) -> bool:
    states = {model.state_of(brokers, each.transactional_id) for each in decision.winners}
    return "Ongoing" in states and len(states) > 1


def _rows(spark: Spark, batches: int) -> set[model.Row]:
    """Return all rows of the first micro-batches that must be read."""
    return {
        (batch_id, write, task, place)
        for batch_id in range(batches)
        for write in spark.writes
        if (batch_id, write) not in spark.swallowed
        for task in range(TASKS)
        for place in range(spark.rows)
    }


def _logged(brokers: Brokers, spark: Spark, batch_id: int, swallowed: frozenset[str]) -> Spark:
    """Check that what is written without an error is written."""
    decisions = {each: brokers.decisions.of(each) for each in swallowed}
    decided = {each for each, last in decisions.items() if last and last.batch.batch_id == batch_id}
    unwritten = spark.swallowed | {(batch_id, each) for each in swallowed - decided}
    spark = spark._replace(logged=max(spark.logged, batch_id), swallowed=unwritten)
    missing = set() if swallowed else _rows(spark, batch_id + 1) - set(brokers.read)
    if missing:
        raise WrongError(f"a commit has returned, and rows are missing: {sorted(missing)}")
    return spark


def _trace(seen: Mapping[State, tuple[State | None, Any]], state: State) -> str:
    lines = []
    at: State | None = state
    while at is not None:
        at, text = seen[at]
        lines.append(str(text))
    return "\n".join(reversed(lines))
