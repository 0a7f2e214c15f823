"""All orders in which processes take their steps, and what must hold after each step.

A state is the state of the brokers and of Spark, and the place of each process in its steps. Two
processes that stand at the same place with the same variables go on alike, and one is enough. What
a process does next is found by running its steps again with the answers so far.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

from spark_kafka_source.errors import KafkaError, KafkaTimeoutError
from spark_kafka_source.exactly_once import replays
from spark_kafka_source.exactly_once.decision import (
    BatchId,
    Decision,
    LastDecisions,
    Outcome,
    StoredDecision,
)
from spark_kafka_source.exactly_once.driver import Driver
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    OtherDriverError,
    PrefixInUseError,
    ReplayDiffersError,
)
from spark_kafka_source.exactly_once.requests import Answered, EndTxn, InitProducerId
from spark_kafka_source.exactly_once.slots import Slot, Slots
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.explorer import brokers as model
from tests.exactly_once.explorer.brokers import LONG_MS, NAMES, Brokers, Row, WrongError
from tests.exactly_once.explorer.spark import (
    COPIED,
    MORE,
    OTHER,
    SAME,
    TASKS,
    At,
    Await,
    Collect,
    Go,
    Happens,
    LogCommit,
    Parts,
    Produce,
    Report,
    Start,
    content_of,
    driver,
    is_copy,
    worker,
)

Transaction = tuple[str, ProducerId]
_PLAIN = {int, str, bool, type(None)}
_SILENT = KafkaTimeoutError("no answer")
_OPEN = object()
"""In place of an answer that has not come."""
_BY_OTHERS = ("taken", "terminated", "aborted", "broken", "expired")
_TOLD: list[str] = []
"""The doubts that the process that runs now has told since its last request."""


class Spark(NamedTuple):
    """The checkpoint, and what Spark knows of its runs."""

    batches: int
    rows: int
    writes: tuple[str, ...]
    logged: int = -1
    """The last micro-batch in the commit log."""
    restored: At | None = None
    """The micro-batch before which the checkpoint was put back, and the kind of its rows now."""
    copied: tuple[int, int] | None = None
    """The first micro-batch of a copy of the checkpoint, and the last one in its commit log."""
    told: frozenset[int] = frozenset()
    """The micro-batches of which a doubt was told."""
    at: tuple[tuple[str, At], ...] = ()
    """Where each run is."""
    reports: frozenset[Report] = frozenset()
    swallowed: frozenset[tuple[int, str]] = frozenset()
    """Writes whose error was swallowed before anything was decided: they are not written."""
    faults: tuple[tuple[str, int], ...] = ()
    """How many more faults of each kind may happen."""
    victims: frozenset[Transaction] = frozenset()
    """The transactions that somebody has ended before they were decided."""
    risky: frozenset[Transaction] = frozenset()
    """The transactions whose commits come too late: rows of others are lost then. See `_risked`."""
    has_swallowed: bool = False
    may_lose: bool = False
    """Whether rows may be lost, with an error. That is so once one of a decision's transactions is
    committed, and another one has ended otherwise; or if the query goes on without an error."""


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
    told: tuple[str, ...] = ()
    """The doubts that the process has told on its way to this place."""
    is_ghost: bool = False
    """Whether the process is dead. Its requests may still arrive."""
    following: dict[Any, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is explored: who runs, how long, and which faults may happen."""

    generation: Generation = Generation.SECOND
    runs: int = 2
    copies: int = 0
    """So many runs have a copy of the checkpoint as it is when the first of them starts."""
    batches: int = 1
    written: int = 0
    """So many micro-batches have been written before."""
    rows: int = 1
    writes: tuple[str, ...] = ("t",)
    faults: Mapping[str, int] = field(default_factory=dict)
    """`long` times, `memory` that is lost, another process of the driver whose `turn` it is,
    errors that code may `swallow`, attempts of a `worker` that die, answers that are `lost`,
    fences that are `repeated` after a lost answer, the `death` of a worker's process, whose last
    requests may still arrive, and which another process follows; a checkpoint that is `restored`
    from one micro-batch before, and perhaps other rows after it.

    Others do the rest: an id is `taken` by a producer with transactions of its own, an open
    transaction is `terminated` (its epoch is fenced), `aborted` with its own epoch, or `broken` (it
    is aborted in its partition, and its coordinator does not know), and an id has `expired`."""
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
        self._runs = [f"r{number}" for number in range(scenario.runs)]
        self._runs += [f"c{number}" for number in range(scenario.copies)]
        self._places: list[Place] = []
        self._numbers: dict[Any, int] = {}
        self._judged: set[tuple[Brokers, Spark]] = set()
        self.outcomes: Counter[str] = Counter()
        self.states = 0

    def explore(self) -> None:
        """Take all steps from all states. Raises `FoundError`."""
        with patch.object(replays.logger, "warning", lambda _, text: _TOLD.append(text)):
            self._explore()

    def _explore(self) -> None:
        scenario = self._scenario
        begun = tuple((self._begin(each), ()) for run in self._runs for each in self._of(run))
        last = scenario.written - 1
        faults = tuple(sorted(scenario.faults.items()))
        spark = Spark(scenario.batches, scenario.rows, scenario.writes, last, faults=faults)
        brokers = Brokers(scenario.generation, scenario.timeout_bumps)
        if scenario.written:
            content = content_of(scenario.rows, SAME)
            decided = Decision(BatchId("q", "former", last), (), 0, content, checkpoint="here")
            stored = tuple(
                StoredDecision((TopicPartition(each, 0),), replace(decided, write=each))
                for each in scenario.writes
            )
            read = frozenset(_rows(spark, "r0", scenario.written))
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
            here = self._places[place]
            if here.requests and not here.is_ghost and _is_unnoticed(here.requests[0], state):
                found = list(self._steps_of(state, number))
                if found:
                    return iter(found)
        return self._noticed(state)

    def _noticed(self, state: State) -> Iterator[tuple[Any, State]]:
        for number in range(len(state.processes)):
            yield from self._steps_of(state, number)
            yield from self._deaths(state, number)
        ending = {
            (each.transactional_id, each.producer)
            for place, answers in state.processes
            for each in _unanswered(self._places[place].requests, answers)
            if isinstance(each, EndTxn) and each.commit and NAMES.is_task_id(each.transactional_id)
        }
        for text, brokers, spark in _times(state.brokers, state.spark, ending):
            yield text, State(brokers, spark, state.processes)
        for text, brokers, spark in _by_others(state.brokers, state.spark, ending):
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
                told = () if process[1] else self._places[process[0]].told
                spark3 = _with_told(spark2, told)
                self._check_result(process[0], spark3)
                after = (*processes[:number], process, *processes[number + 1 :])
                yield (number, text), State(brokers2, spark3, after)

    def _deaths(self, state: State, number: int) -> Iterator[tuple[Any, State]]:
        """A worker's process dies. Its last requests may still arrive. Another process follows."""
        run, place = divmod(number, 1 + TASKS)
        number_of, answers = state.processes[number]
        requests = self._places[number_of].requests
        spark = _less(state.spark, "death")
        is_alive = requests and not self._places[number_of].is_ghost
        if spark is None or run >= len(self._runs) or not place or not is_alive:
            return
        run_id, task = self._runs[run], place - 1
        sent = tuple(
            each
            for each in _unanswered(requests, answers)
            if isinstance(each, Produce | InitProducerId | EndTxn)
        )
        ghost = self._add(Place(partial(_ghost, sent), (), is_ghost=True))
        if isinstance(requests[0], Await):
            after = requests[0].after
        else:
            at = dict(spark.at)[run_id]
            after = at._replace(place=at.place - 1)
        follower = self._begin(partial(worker, run_id, task, self._parts, after, 1))
        processes = (*state.processes[:number], (ghost, ()), *state.processes[number + 1 :])
        yield (number, "dies"), State(state.brokers, spark, (*processes, (follower, ())))

    # -- places in steps ---------------------------------------------------------------------------

    def _of(self, run_id: str) -> list[Callable[[], Any]]:
        """Return the processes of a run."""
        workers = [partial(worker, run_id, task, self._parts) for task in range(TASKS)]
        return [partial(driver, run_id, self._parts), *workers]

    def _begin(self, steps: Callable[[], Any]) -> int:
        return self._add(Place(steps, ()))

    def _add(self, place: Place) -> int:
        """Run steps up to a place, and return its number. Equal places have one number."""
        running = place.steps()
        try:
            _TOLD.clear()
            requests = next(running)
            for answers, now_ms in place.answers_so_far:
                errors = [
                    each
                    for each, request in zip(answers, requests, strict=True)
                    if isinstance(each, KafkaError) and not isinstance(request, EndTxn | Produce)
                ]
                _TOLD.clear()
                if errors:
                    errors[0].__context__ = errors[0].__traceback__ = None
                    requests = running.throw(errors[0])
                else:
                    requests = running.send(Answered(answers, now_ms))
            place.requests = tuple(requests)
        except StopIteration as end:
            place.result = end.value
        place.told = tuple(_TOLD)
        here = repr(place.result) if not place.requests else (place.requests, *_frames(running))
        key = here, place.told
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
        harmless = {"repeated", "turn", "taken", "aborted"}
        is_alone = len(self._runs) == 1 and self._scenario.faults.keys() <= harmless
        if isinstance(result, OtherDriverError) and is_alone:
            raise WrongError(f"there is no other driver, and: {result}")
        if isinstance(result, DecidedRowsLostError) and not spark.may_lose:
            raise WrongError(f"nothing can be lost, and: {result}")

    # -- the end -----------------------------------------------------------------------------------

    def _judge(self, state: State) -> None:
        """Let all processes be dead, and run the query again: all rows are read once.

        If rows may be lost, they may be lost with an error. An error about a checkpoint that was
        put back ends once the last one is there again. One about a copy is the copy's gain.
        """
        spark = state.spark._replace(reports=frozenset(), faults=(), at=(), risky=frozenset())
        key = state.brokers, spark
        if key in self._judged:
            return
        self._judged.add(key)
        brokers = state.brokers
        # One more micro-batch, so that the last one is settled, too.
        spark = spark._replace(batches=spark.batches + 1)
        trace: list[Any] = []
        left = ["judge", "judge2"] if brokers.now_ms else ["judge"]
        while left:
            run_id = left.pop(0)
            processes = tuple((self._begin(each), ()) for each in self._of(run_id))
            found = State(brokers, spark, processes)
            while step := next(self._steps_of_processes(found), None):
                trace.append(step[0])
                found = step[1]
            brokers, spark = found.brokers, found.spark._replace(reports=frozenset(), at=())
            error = self._places[found.processes[0][0]].result
            if not isinstance(error, KafkaError):
                break
            if isinstance(error, DecidedRowsLostError) and spark.may_lose:
                self.outcomes["judge: lost, with an error"] += 1
                return
            if isinstance(error, PrefixInUseError | ReplayDiffersError):
                self.outcomes[f"judge: {type(error).__name__}"] += 1
                if spark.restored is not None:
                    logged = max(spark.logged, spark.restored.batch_id)
                    spark = spark._replace(logged=logged, restored=None)
                    left.append("judge3")
                elif spark.copied is not None and not is_copy(run_id):
                    left.append("cjudge")
        text = "\n".join(map(str, trace))
        if isinstance(error, KafkaError):
            raise WrongError(f"the next run has failed: {error}\n{text}")
        missing = _rows(spark, run_id, spark.batches) - brokers.read
        if missing:
            raise WrongError(f"rows are missing: {sorted(missing)}\n{text}")
        if held_up := model.open_ids(brokers):
            raise WrongError(f"readers are held up by {held_up}\n{text}")

    def _steps_of_processes(self, state: State) -> Iterator[tuple[Any, State]]:
        return (each for each in self._steps(state) if isinstance(each[0], tuple))


def _unanswered(requests: tuple[Any, ...], answers: tuple[Any, ...]) -> list[Any]:
    got = answers or (_OPEN,) * len(requests)
    return [each for each, answer in zip(requests, got, strict=True) if answer is _OPEN]


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
    if isinstance(value, Driver | Slots):
        return _plain(vars(value))
    if isinstance(value, Slot):
        return tuple(_plain(getattr(value, each)) for each in Slot.__slots__)
    return value


def _ghost(requests: tuple[Any, ...]) -> Any:
    """The requests that a process has sent before its end."""
    if requests:
        yield requests


Answers = Iterator[tuple[Any, Brokers, Spark, Any]]


def _answers(brokers: Brokers, spark: Spark, request: Any) -> Answers:
    """Each possible answer to a request; none while the process has to wait."""
    match request:
        case Start() | Go() | Await() | Report() | Collect() | LogCommit():
            for spark2, answer in _spark_answers(brokers, spark, request):
                yield (request, answer), brokers, spark2, answer
        case Happens(fault):
            yield request, brokers, spark, False
            if (less := _less(spark, fault)) is not None:
                yield ("yes", request), brokers, _swallowed(brokers, less, fault), True
        case Produce(transactional_id, producer, row):
            after, answer = model.produce(brokers, transactional_id, producer, row)
            yield (request, answer), after, spark, answer
        case _:
            after, answer = model.ask(brokers, request)
            yield (request, answer), after, _risked(brokers, after, spark), answer
            if (less := _less(spark, "lost")) is not None:
                yield (request, "the answer is lost"), after, _risked(brokers, after, less), _SILENT
                yield (request, "lost"), brokers, less, _SILENT
            is_fence = request == InitProducerId(NAMES.control_id)
            if is_fence and (less := _less(spark, "repeated")) is not None:
                again, answer = model.ask(after, request)
                yield (request, "repeated"), again, less, answer


def _spark_answers(brokers: Brokers, spark: Spark, request: Any) -> Iterator[tuple[Spark, Any]]:
    match request:
        case Start():
            yield from _starts(spark, request)
        case Go(run_id, at):
            yield _at(spark, run_id, at), None
        case Await(run_id, after):
            at = dict(spark.at).get(run_id, after)
            if at > after:
                yield spark, at
        case Collect(run_id, at):
            mine = [each for each in spark.reports if (each.run_id, each.at) == (run_id, at)]
            if len(mine) == TASKS:
                found = tuple(sorted(mine, key=lambda each: each.task))
                yield spark._replace(reports=spark.reports.difference(mine)), found
        case Report():
            yield spark._replace(reports=spark.reports | {request}), None
        case LogCommit():
            yield _logged(brokers, spark, request), None


def _starts(spark: Spark, start: Start) -> Iterator[tuple[Spark, At | None]]:
    run_id, after = start.run_id, start.after
    if is_copy(run_id) and spark.copied is None:
        spark = spark._replace(copied=(spark.logged + 1, spark.logged))
    logged = spark.copied[1] if is_copy(run_id) and spark.copied else spark.logged
    batch_id = (logged if after is None else after.batch_id) + 1
    if batch_id >= spark.batches:
        yield spark, None
    else:
        at = At(batch_id, 0, _kind(spark, run_id, batch_id))
        yield _at(spark, run_id, at), at
    less = _less(spark, "restored")
    if after is None and less is not None and logged >= 0 and not is_copy(run_id):
        for kind in (SAME, OTHER, MORE):
            at = At(logged, 0, kind)
            yield _at(less._replace(logged=logged - 1, restored=at), run_id, at), at


def _at(spark: Spark, run_id: str, at: At) -> Spark:
    return spark._replace(at=tuple(sorted((dict(spark.at) | {run_id: at}).items())))


def _kind(spark: Spark, run_id: str, batch_id: int) -> int:
    """Return the kind of the rows of a micro-batch, as a run's checkpoint says."""
    if is_copy(run_id):
        return COPIED if spark.copied is not None and batch_id >= spark.copied[0] else SAME
    is_restored = spark.restored is not None and batch_id == spark.restored.batch_id
    return spark.restored.kind if is_restored and spark.restored is not None else SAME


def _with_told(spark: Spark, texts: tuple[str, ...]) -> Spark:
    """Note of which micro-batches a doubt was told. Raises `WrongError` if there is none."""
    if not texts:
        return spark
    if spark.restored is None or spark.restored.kind == SAME:
        raise WrongError(f"nothing is doubtful, and: {texts}")
    # The text of a `BatchId` comes first: "batch 1 of ...".
    return spark._replace(told=spark.told | {int(each.split()[1]) for each in texts})


def _is_unnoticed(request: Any, state: State) -> bool:
    """Whether a step makes no difference to other processes, and theirs make none to it."""
    spark = state.spark
    match request:
        case Go() | Await() | Report() | Collect():
            return True
        case Start(_, after):
            return after is not None and _less(spark, "long") is None
        case Happens(fault):
            return _less(spark, fault) is None
        case InitProducerId(transactional_id):
            if transactional_id == NAMES.control_id:
                return False
            # Nobody else knows a task's id before its first row, or its use by others.
            is_known = state.brokers.find(transactional_id) is not None
            faults = ("lost", "death", *(_BY_OTHERS if is_known else ()))
            return all(_less(spark, each) is None for each in faults)
    return False


def _less(spark: Spark, fault: str) -> Spark | None:
    """Return Spark with one fault of this kind less to come; None if there is none left."""
    faults = dict(spark.faults)
    if not faults.get(fault):
        return None
    faults[fault] -= 1
    return spark._replace(faults=tuple(sorted(faults.items())))


Happening = Iterator[tuple[str, Brokers, Spark]]


def _swallowed(brokers: Brokers, spark: Spark, fault: str) -> Spark:
    """Return Spark after a fault: once an error is swallowed, the query goes on."""
    if fault != "swallow":
        return spark
    is_late = brokers.now_ms > 0 or any(
        Outcome.ABORTED in _outcomes(brokers, each) for _, each in brokers.decisions.stored
    )
    return spark._replace(has_swallowed=True, may_lose=spark.may_lose or is_late)


def _risked(before: Brokers, after: Brokers, spark: Spark) -> Spark:
    """Return Spark after a request.

    The driver that decides has seen all transactions open. So its commits are risky if somebody has
    ended one meanwhile.
    """
    decided = {each[:2] for each in after.decided - before.decided}
    if decided & spark.victims:
        spark = spark._replace(risky=spark.risky | decided)
    ended = after.log - before.log
    if any(each.is_committed and (each[0], each.producer) in spark.risky for each in ended):
        spark = spark._replace(may_lose=True)
    return spark


def _times(brokers: Brokers, spark: Spark, ending: set[Transaction]) -> Happening:
    """A long time passes, or a broker aborts a transaction that is out of time.

    `ending` are the transactions whose commits are under way.
    """
    if (less := _less(spark, "long")) is not None:
        half_done = any(
            {Outcome.OPEN, Outcome.COMMITTED} <= _outcomes(brokers, each)
            for _, each in brokers.decisions.stored
        )
        may_lose = half_done or spark.has_swallowed or spark.may_lose
        less = less._replace(may_lose=may_lose, risky=spark.risky | ending)
        yield "a long time passes", brokers._replace(now_ms=brokers.now_ms + LONG_MS), less
    for transactional_id, found in brokers.transactions:
        if brokers.is_due(found):
            text = f"{transactional_id} times out"
            yield text, model.time_out(brokers, transactional_id), spark


def _by_others(brokers: Brokers, spark: Spark, ending: set[Transaction]) -> Happening:
    """Somebody else ends a transaction or takes its id, or its coordinator forgets it."""
    for fault in _BY_OTHERS:
        less = _less(spark, fault)
        if less is None:
            continue
        for transactional_id, found in brokers.transactions:
            harmed = _harmed(brokers, less, (transactional_id, found.producer), ending)
            is_open, is_task = found.state == "Ongoing", NAMES.is_task_id(transactional_id)
            after = []
            if fault == "taken" and is_task:
                after = [model.take(brokers, transactional_id, commits=x) for x in (True, False)]
            if fault == "terminated" and is_open:
                after = [model.take(brokers, transactional_id)]
            if fault == "aborted" and is_open and is_task:
                after = [model.abort(brokers, transactional_id)]
            if fault == "broken" and is_open and is_task:
                after = [model.break_(brokers, transactional_id)]
            if fault == "expired" and not is_open:
                after = [model.forget(brokers, transactional_id)]
            for each in after:
                yield f"{transactional_id} is {fault}", each, harmed if is_open else less


def _harmed(brokers: Brokers, spark: Spark, victim: Transaction, ending: set[Transaction]) -> Spark:
    """Return Spark after somebody has ended an open transaction."""
    for _, decision in brokers.decisions.stored:
        transactions = {winner[:2] for winner in decision.winners}
        if victim in transactions:
            may_lose = spark.may_lose or spark.has_swallowed
            may_lose |= Outcome.COMMITTED in _outcomes(brokers, decision)
            return spark._replace(may_lose=may_lose, risky=spark.risky | (transactions & ending))
    return spark._replace(victims=spark.victims | {victim})


def _outcomes(brokers: Brokers, decision: Decision) -> set[Outcome]:
    return {model.outcome_of(brokers, winner).outcome for winner in decision.winners}


def _rows(spark: Spark, run_id: str, batches: int) -> set[Row]:
    """Return all rows of the first micro-batches that must be read, as a run's checkpoint says."""
    return {
        Row(batch_id, write, task, place, _kind(spark, run_id, batch_id))
        for batch_id in range(batches)
        for write in spark.writes
        if (batch_id, write) not in spark.swallowed and batch_id not in spark.told
        for task in range(TASKS)
        for place in range(spark.rows)
    }


def _logged(brokers: Brokers, spark: Spark, log: LogCommit) -> Spark:
    """Check that what is written without an error is written."""
    run_id, at, swallowed = log.run_id, log.at, log.swallowed
    decisions = {each: brokers.decisions.of(each) for each in swallowed}
    decided = {
        each for each, last in decisions.items() if last and last.batch.batch_id == at.batch_id
    }
    unwritten = spark.swallowed | {(at.batch_id, each) for each in swallowed - decided}
    if is_copy(run_id) and spark.copied is not None:
        spark = spark._replace(copied=(spark.copied[0], max(spark.copied[1], at.batch_id)))
    else:
        spark = spark._replace(logged=max(spark.logged, at.batch_id))
    spark = spark._replace(swallowed=unwritten)
    # What was put back had been written before. A run that is still alive knows nothing of it.
    restored = at if at.kind in (OTHER, MORE) else None
    expected = _rows(spark._replace(restored=restored), run_id, at.batch_id + 1)
    missing = set() if swallowed else expected - brokers.read
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
