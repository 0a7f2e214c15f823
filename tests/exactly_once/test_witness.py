"""Outcomes of decided transactions, read from the log, whatever happened under their ids since.

confluent-kafka's producers make what is read on real brokers, and its consumer judges it.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka import Producer

from spark_kafka_source.admin.held_up_partitions import open_writers
from spark_kafka_source.admin.transactions import describe_transactions
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    CorruptRecordError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    error_named,
)
from spark_kafka_source.exactly_once import driver
from spark_kafka_source.exactly_once.decision import Outcome, Winner
from spark_kafka_source.exactly_once.endings import Transactions
from spark_kafka_source.exactly_once.errors import (
    DecidedRowsLostError,
    DoubtfulReplayError,
    TransactionTimedOutError,
)
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.replays import Caution
from spark_kafka_source.exactly_once.witness import found_in_log
from spark_kafka_source.producer import Place, PreparedTransaction
from spark_kafka_source.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.records import (
    Record,
    encode_batch,
)
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.testing.memory.log import PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.exactly_once.conftest import (
    PROPERTIES,
    REAL_BROKERS,
    Trial,
    in_memory_trial,
    transaction_of,
)
from tests.exactly_once.dying import CrashError, decided, dies_at
from tests.exactly_once.judge import committed, found_by_confluent, wait_for_markers
from tests.exactly_once.query import Query, client_of
from tests.exactly_once.steps import Step
from tests.matrix.conftest import OLDEST_KAFKA
from tests.producer.blocking import BlockingCoordinator

PARTITIONS = 4
IN_TIME_SECONDS = 60.0
OPEN, COMMITTED_, ABORTED_ = Outcome.OPEN, Outcome.COMMITTED, Outcome.ABORTED
UNKNOWN, GONE, REPLACED = Outcome.UNKNOWN, Outcome.TOPIC_GONE, Outcome.REPLACED


def winner_of(client: KafkaClient, prepared: PreparedTransaction) -> Winner:
    """Return an open transaction as a decision would have it."""
    name, place = prepared.transactional_id, prepared.place
    assert place is not None
    state = client.run(describe_transactions(client, [name]))[name]
    assert state is not None
    asked = partial(client.topics, [place.topic_partition.topic])
    (topic,) = client.run(client.retrying("Metadata", asked))
    place = place._replace(topic_id=topic.topic_id)
    return Winner(name, prepared.producer, state.started_at_ms, place)


def read(client: KafkaClient, winner: Winner) -> Outcome:
    """Return what the log tells."""
    assert winner.place is not None
    return client.run(found_in_log(client, winner, winner.place))


def judged(client: KafkaClient, winner: Winner) -> Outcome:
    """Return what a driver finds, by the log and the coordinator."""
    transactions = Transactions(client, Names("w"))
    return client.run(transactions.outcomes([winner]))[winner].outcome


# -- what happens to a transaction, on real brokers ------------------------------------------------


class Writer:
    """A producer of confluent-kafka. It has written a row in a transaction, which is open."""

    def __init__(self, servers: str, topic: str, transactional_id: str, timeout_ms: int) -> None:
        self.servers, self.topic, self.transactional_id = servers, topic, transactional_id
        timeouts = dict.fromkeys(("transaction.timeout.ms", "message.timeout.ms"), timeout_ms)
        given = {"bootstrap.servers": servers, "transactional.id": transactional_id, "log_level": 0}
        self.producer = Producer(given | timeouts)
        self.producer.init_transactions(IN_TIME_SECONDS)
        self.offset = self.write()

    def write(self) -> int:
        """Write a row in the next transaction. Return its offset."""
        offsets: list[int | None] = []
        self.producer.begin_transaction()
        self.producer.produce(
            self.topic,
            self.transactional_id,
            partition=0,
            on_delivery=lambda _, message: offsets.append(message.offset()),
        )
        assert not self.producer.flush(IN_TIME_SECONDS)
        (offset,) = offsets
        assert offset is not None
        return offset

    def end(self, *, commit: bool) -> None:
        how = self.producer.commit_transaction if commit else self.producer.abort_transaction
        how(IN_TIME_SECONDS)


@dataclass(frozen=True, slots=True)
class Scene:
    """A transaction to judge, and where it is."""

    kafka: LocalKafka
    writer: Writer

    def commit(self) -> None:
        self.writer.end(commit=True)

    def abort(self) -> None:
        self.writer.end(commit=False)

    def is_taken(self) -> None:
        take(self.writer.servers, self.writer.transactional_id)

    def is_forced(self) -> None:
        force(self.kafka, self.writer.transactional_id)

    def is_left(self) -> None:
        """Nothing happens. A timeout may come."""

    def goes_on(self, *, first: bool, second: bool) -> None:
        self.writer.end(commit=first)
        self.writer.write()
        self.writer.end(commit=second)

    def loses_its_rows(self, *, goes_on: bool) -> None:
        self.commit()
        wait_for_markers(self.writer.servers, self.writer.topic, 1)
        self.kafka.delete_records({TopicPartition(self.writer.topic, 0): self.writer.offset + 1})
        if goes_on:
            self.is_taken()

    def loses_its_topic(self, *, commit: bool = True, again: bool = False) -> None:
        self.writer.end(commit=commit)
        self.kafka.delete_topic(self.writer.topic)
        if again:
            self.kafka.create_topic(self.writer.topic)


def take(servers: str, transactional_id: str) -> None:
    """Let another producer begin under the id."""
    given = {"bootstrap.servers": servers, "transactional.id": transactional_id, "log_level": 0}
    Producer(given).init_transactions(IN_TIME_SECONDS)


def force(kafka: LocalKafka, transactional_id: str) -> None:
    """Abort a transaction by Kafka's own tool. The oldest Kafka has only the request for it."""
    if kafka._version == OLDEST_KAFKA:
        take(kafka.bootstrap_servers, transactional_id)
        return
    what = "forceTerminateTransaction", "--transactionalId", transactional_id
    kafka.tool("transactions", *what)


SOON_MS, LATE_MS = 1_500, 60_000
SCENES: dict[str, tuple[Callable[[Scene], None], int, Outcome, Outcome]] = {
    # What happens, its timeout, the log's word, and what a driver finds.
    "open": (Scene.is_left, LATE_MS, OPEN, OPEN),
    "committed": (Scene.commit, LATE_MS, COMMITTED_, COMMITTED_),
    "aborted": (Scene.abort, LATE_MS, ABORTED_, ABORTED_),
    "taken": (Scene.is_taken, LATE_MS, ABORTED_, ABORTED_),
    "forced": (Scene.is_forced, LATE_MS, ABORTED_, ABORTED_),
    "timed out": (Scene.is_left, SOON_MS, ABORTED_, ABORTED_),
    "committed, then committed": (
        partial(Scene.goes_on, first=True, second=True),
        LATE_MS,
        COMMITTED_,
        COMMITTED_,
    ),
    "committed, then aborted": (
        partial(Scene.goes_on, first=True, second=False),
        LATE_MS,
        COMMITTED_,
        COMMITTED_,
    ),
    "aborted, then committed": (
        partial(Scene.goes_on, first=False, second=True),
        LATE_MS,
        ABORTED_,
        ABORTED_,
    ),
    # The coordinator's word about exactly this transaction counts then.
    "rows deleted": (partial(Scene.loses_its_rows, goes_on=False), LATE_MS, UNKNOWN, COMMITTED_),
    "rows deleted, taken": (partial(Scene.loses_its_rows, goes_on=True), LATE_MS, UNKNOWN, UNKNOWN),
    "topic deleted": (Scene.loses_its_topic, LATE_MS, GONE, GONE),
    "topic made again": (partial(Scene.loses_its_topic, again=True), LATE_MS, GONE, GONE),
    "aborted, topic deleted": (
        partial(Scene.loses_its_topic, commit=False),
        LATE_MS,
        GONE,
        ABORTED_,
    ),
}


@pytest.fixture(params=REAL_BROKERS)
def kafka_of(request: pytest.FixtureRequest) -> LocalKafka:
    found: LocalKafka = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("name", SCENES)
def test_what_happened_to_a_transaction(name: str, kafka_of: LocalKafka, topic: str) -> None:
    happens, timeout_ms, told, found = SCENES[name]
    servers = kafka_of.bootstrap_servers
    kafka_of.create_topic(topic)
    writer = Writer(servers, topic, f"id-of-{topic}", timeout_ms)
    with client_of(servers) as client:
        winner = confluent_winner(client, writer)
        happens(Scene(kafka_of, writer))
        assert until_told(client, winner, at_once=told is OPEN) is told
        assert judged(client, winner) is found
    if UNKNOWN not in (told, found) and GONE not in (told, found):
        rows = committed(servers, topic, 1)
        assert bool(rows and rows[0] == writer.transactional_id.encode()) is (
            told is COMMITTED_ or name == "aborted, then committed"
        )
        assert len(rows) == name.count("committed")


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_behind_another_one(commit: bool, kafka_of: LocalKafka, topic: str) -> None:
    """Readers of committed records wait for the other one. The marker of this one is there."""
    servers = kafka_of.bootstrap_servers
    kafka_of.create_topic(topic)
    before = Writer(servers, topic, f"before-{topic}", LATE_MS)
    writer = Writer(servers, topic, f"id-of-{topic}", LATE_MS)
    expected = COMMITTED_ if commit else ABORTED_
    with client_of(servers) as client:
        winner = confluent_winner(client, writer)
        assert read(client, winner) is OPEN
        writer.end(commit=commit)
        writer.write()  # And it goes on.
        assert until_told(client, winner) is expected
        assert not committed(servers, topic, 1)
        before.end(commit=False)
        wait_for_markers(servers, topic, 1, 1.0)
        assert until_told(client, winner) is expected
    assert committed(servers, topic, 1) == [writer.transactional_id.encode()] * commit


def confluent_winner(client: KafkaClient, writer: Writer) -> Winner:
    name = writer.transactional_id
    state = client.run(describe_transactions(client, [name]))[name]
    assert state is not None
    place = Place(TopicPartition(writer.topic, 0), writer.offset)
    return winner_of(client, PreparedTransaction(name, state.producer, 1, place))


def until_told(client: KafkaClient, winner: Winner, *, at_once: bool = False) -> Outcome:
    """Look until the marker is there, which coordinators write somewhat after their answer."""
    until_seconds = time.monotonic() + IN_TIME_SECONDS
    while (found := read(client, winner)) is OPEN and time.monotonic() < until_seconds:
        if at_once:
            break
    return found


# -- what happens to a query's decision, on real brokers -------------------------------------------


def abort_by_request(kafka: LocalKafka, prepared: PreparedTransaction) -> None:
    """Abort a transaction as any client may, without a look at the decisions."""
    with client_of(kafka.bootstrap_servers) as client:
        coordinator = BlockingCoordinator(client, prepared.transactional_id)
        coordinator.end(prepared.producer, commit=False)


DANGERS: dict[str, Callable[[LocalKafka, PreparedTransaction], None]] = {
    "taken": lambda kafka, each: take(kafka.bootstrap_servers, each.transactional_id),
    "aborted": abort_by_request,
    "forced": lambda kafka, each: force(kafka, each.transactional_id),
}


@dataclass(frozen=True, slots=True)
class Real:
    kafka: LocalKafka
    trial: Trial


def real_on(kafka: LocalKafka, topic: str) -> Real:
    kafka.create_topic(topic, PARTITIONS)
    query = Query(kafka.bootstrap_servers, topic, PARTITIONS)
    return Real(kafka, Trial(query, found_by_confluent))


@pytest.fixture
def real(kafka_of: LocalKafka, topic: str) -> Real:
    return real_on(kafka_of, topic)


@pytest.mark.parametrize("which", ["one", "all", "one, the other is committed"])
@pytest.mark.parametrize("danger", DANGERS)
def test_somebody_ends_what_is_decided(danger: str, which: str, real: Real) -> None:
    """If all are aborted in the end, the micro-batch is written again. Else an error says which."""
    trial, query = real.trial, real.trial.query
    run = query.start()
    run.commit(0, run.write(0))
    first, second = decided(run, 1)
    if which == "one, the other is committed":
        with client_of(query.servers) as client:
            BlockingCoordinator(client, first.transactional_id).end(first.producer, commit=True)
    for each in (first, second) if which == "all" else (second,):
        DANGERS[danger](real.kafka, each)
    run = query.start()
    winners = run.write(1)
    if which == "one, the other is committed":
        with pytest.raises(DecidedRowsLostError) as raised:
            run.commit(1, winners)
        assert raised.value.found == {ABORTED_: (second.transactional_id,)}
        run.abort(1, winners)
        query.written -= set(query.values(1, 1))
    else:
        run.commit(1, winners)
        run.commit(2, run.write(2))
    trial.judge()


def end_in_one_partition(kafka: LocalKafka, query: Query, prepared: PreparedTransaction) -> None:
    """Let Kafka's tool write an ABORT marker, of which the coordinator knows nothing."""
    places = [TopicPartition(query.topic, each) for each in range(PARTITIONS)]
    with client_of(query.servers) as client:
        writers = client.run(open_writers(client, places))
    for where, found in writers.items():
        for writer in found:
            if writer.producer == prepared.producer:
                what = "--topic", where.topic, "--partition", str(where.partition)
                kafka.tool(
                    "transactions", "abort", *what, "--start-offset", str(writer.start_offset)
                )
                return


@pytest.mark.parametrize("step", [None, Step.DECIDED, Step.ONE_ENDED], ids=str)
def test_somebody_ends_it_in_one_partition(
    step: Step | None, real: Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, query = real.trial, real.trial.query
    run = query.start()
    run.commit(0, run.write(0))
    winners = run.write(1)
    second = winners[1]
    if step is not None:
        with pytest.raises(CrashError):
            run.commit(1, winners, dies_at(step))
    end_in_one_partition(real.kafka, query, second)
    if step is None:
        monkeypatch.setattr(driver, "_BY_HAND_MS", 0)
        with pytest.raises(TransactionTimedOutError, match="by somebody's tool"):
            run.commit(1, winners)
        run.abort(1, winners)
    run = query.start()
    winners = run.write(1)
    if step is Step.ONE_ENDED:
        with pytest.raises(DecidedRowsLostError) as raised:
            run.commit(1, winners)
        assert raised.value.found == {Outcome.BROKEN: (second.transactional_id,)}
        run.abort(1, winners)
        return
    run.commit(1, winners)
    run.commit(2, run.write(2))
    trial.judge()


def test_somebody_takes_the_ids_of_what_is_finished(real: Real) -> None:
    """Their epochs say nothing of the decision. A replay is dropped, and the query goes on."""
    query = real.trial.query
    run = query.start()
    winners = run.write(0)
    run.commit(0, winners)
    for each in winners:
        take(query.servers, each.transactional_id)
    for batch_id in (0, 1):
        run = query.start()
        run.commit(batch_id, run.write(batch_id))
    real.trial.judge()


@pytest.mark.parametrize("taken", [False, True], ids=["known", "taken"])
@pytest.mark.parametrize("batch_id", [1, 2], ids=["replayed", "gone on"])
def test_the_decided_rows_are_deleted(
    batch_id: int, taken: bool, real: Real, caplog: pytest.LogCaptureFixture
) -> None:
    """As by retention. The coordinator may still know how exactly these transactions ended."""
    trial, query = real.trial, real.trial.query
    run = query.start()
    run.commit(0, run.write(0))
    winners = run.write(1)
    run.commit(1, winners)
    trial.judge()
    for each in winners if taken else ():
        take(query.servers, each.transactional_id)
    ends = dict.fromkeys((TopicPartition(query.topic, each) for each in range(PARTITIONS)), -1)
    real.kafka.delete_records(ends)
    query.written.clear()
    ids = tuple(each.transactional_id for each in winners)
    query.caution = Caution.FAIL
    run = query.start()
    winners = run.write(batch_id)
    if not taken:
        run.commit(batch_id, winners)
    else:
        with pytest.raises((DecidedRowsLostError, DoubtfulReplayError)) as raised:
            run.commit(batch_id, winners)
        run.abort(batch_id, winners)
        is_replay = isinstance(raised.value, DecidedRowsLostError)
        assert is_replay is (batch_id == 1)
        if isinstance(raised.value, DecidedRowsLostError):
            assert raised.value.found == {UNKNOWN: ids}
        else:
            assert "no longer in the log, so that nobody knows" in str(raised.value)
            query.caution = Caution.WARN
            run = query.start()
            run.commit(batch_id, run.write(batch_id))
            assert "no longer in the log, so that nobody knows" in caplog.text
    if batch_id == 1:
        query.written.clear()
    trial.judge()


# -- ids that expire -------------------------------------------------------------------------------

EXPIRING = PROPERTIES | {
    "transactional.id.expiration.ms": "3000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}


@pytest.fixture(scope="module", params=[2, 1], ids=["second_generation", "first_generation"])
def forgetful(request: pytest.FixtureRequest) -> Iterator[LocalKafka]:
    """A broker that forgets ids after three seconds."""
    with LocalKafka(properties=EXPIRING) as kafka:
        if request.param == 1:
            kafka.tool("features", "downgrade", "--feature", "transaction.version=1")
        yield kafka


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.parametrize("stops", ["finished", "before all ends", "amid the ends"])
def test_ids_expire_while_the_query_is_down(
    stops: str, forgetful: LocalKafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No false alarm, and none that is missed. What is open does not expire before its timeout."""
    real = real_on(forgetful, topic)
    trial, query = real.trial, real.trial.query
    query.timeout_ms = 30_000 if stops == "finished" else 8_000
    run = query.start()
    run.commit(0, run.write(0))
    first, second = winners = run.write(1)
    if stops == "finished":
        run.commit(1, winners)
    else:
        with pytest.raises(CrashError):
            run.commit(1, winners, dies_at(Step.DECIDED))
        if stops == "amid the ends":
            with client_of(query.servers) as client:
                BlockingCoordinator(client, first.transactional_id).end(first.producer, commit=True)
    until_forgotten(query, winners)
    query.timeout_ms = 60_000
    for batch_id in (1, 2):
        run = query.start()
        winners = run.write(batch_id)
        if stops == "amid the ends":
            with pytest.raises(DecidedRowsLostError) as raised:
                run.commit(batch_id, winners)
            assert raised.value.found == {ABORTED_: (second.transactional_id,)}
            run.abort(batch_id, winners)
        else:
            run.commit(batch_id, winners)
    if stops == "amid the ends":
        query.written -= {*query.values(1, 1), *query.values(2, 0), *query.values(2, 1)}
    trial.judge()
    assert not caplog.records


def until_forgotten(query: Query, prepared: list[PreparedTransaction]) -> None:
    ids = [each.transactional_id for each in prepared]
    until_seconds = time.monotonic() + IN_TIME_SECONDS
    with client_of(query.servers) as client:
        while any(client.run(describe_transactions(client, ids)).values()):
            assert time.monotonic() < until_seconds
            time.sleep(0.2)


# -- logs that changed, in memory ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InMemory:
    """An open transaction whose place is not the start of the log, and what it is in."""

    broker: MemoryBroker
    query: Query
    prepared: PreparedTransaction
    winner: Winner
    client: KafkaClient

    @property
    def log(self) -> PartitionLog:
        found = self.broker.cluster.log(*self.place.topic_partition)
        assert found is not None
        return found

    @property
    def place(self) -> Place:
        assert self.winner.place is not None
        return self.winner.place

    def end(self, *, commit: bool = True) -> None:
        found = transaction_of(self.broker, self.prepared)
        found.end(self.broker.cluster, commit=commit)

    def go_on(self) -> None:
        """Let the coordinator's state be about a later transaction."""
        transaction_of(self.broker, self.prepared).started_at_ms += 1


@pytest.fixture
def one(broker: MemoryBroker, topic: str) -> Iterator[InMemory]:
    query = in_memory_trial(broker, topic).query
    run = query.start()
    run.commit(0, run.write(0))
    (prepared,) = run.write(1, 1)
    with client_of(query.servers, retry_backoff_ms=1, default_api_timeout_ms=1_500) as client:
        yield InMemory(broker, query, prepared, winner_of(client, prepared), client)


def lose(one: InMemory) -> None:
    one.log.truncate(one.place.offset)
    one.log.producers.clear()  # So does a leader that has not these batches.


def compact_batch(one: InMemory) -> None:
    one.end()
    kept = [each for each in one.log.batches if each.base_offset != one.place.offset]
    one.log.batches[:] = kept


def replace_by_others(one: InMemory) -> None:
    lose(one)
    one.log.append(b"x")


def replace_by_transaction(one: InMemory, epochs: int, ids: int) -> None:
    lose(one)
    producer_id, epoch = one.winner.producer
    own = {"producer_id": producer_id + ids, "producer_epoch": epoch + epochs}
    one.log.append(b"x", transactional=True, base_sequence=0, **own)
    one.log.append_marker(producer_id + ids, commit=True)


def shorten(one: InMemory) -> None:
    one.log.truncate(0)
    one.log.producers.clear()


def shorten_behind_another(one: InMemory) -> None:
    """Readers of committed records see no more of an open transaction than of the log's end."""
    lose(one)
    one.log.fixed_last_stable_offset = 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (compact_batch, UNKNOWN),
        (replace_by_others, REPLACED),
        (partial(replace_by_transaction, epochs=0, ids=1), REPLACED),
        (partial(replace_by_transaction, epochs=1, ids=0), REPLACED),
        (lose, REPLACED),
        (shorten, REPLACED),
        (shorten_behind_another, REPLACED),
    ],
    ids=["compacted", "plain", "other producer", "other epoch", "ends there", "shorter", "behind"],
)
def test_the_log_has_changed(
    change: Callable[[InMemory], None], told: Outcome, one: InMemory
) -> None:
    """As by compaction, or by an unclean election."""
    change(one)
    assert read(one.client, one.winner) is told
    one.log.fixed_last_stable_offset = 0  # Behind an open transaction it is read another way.
    assert read(one.client, one.winner) is told


@pytest.mark.parametrize("commit", [True, False])
def test_the_marker_of_another_one_behind_an_open_transaction(commit: bool, one: InMemory) -> None:
    one.log.fixed_last_stable_offset = one.place.offset
    one.log.append_marker(one.winner.producer.producer_id + 1, commit=not commit)
    assert read(one.client, one.winner) is OPEN
    one.end(commit=commit)
    assert read(one.client, one.winner) is (COMMITTED_ if commit else ABORTED_)


def test_a_marker_that_is_compacted_away_behind_an_open_transaction(one: InMemory) -> None:
    one.end()
    *_, marker = one.log.batches
    empty = encode_batch(
        [],
        base_offset=marker.base_offset,
        last_offset_delta=0,
        producer_id=one.winner.producer.producer_id,
        transactional=True,
        control=True,
    )
    one.log.batches[-1] = marker._replace(data=empty)
    one.log.fixed_last_stable_offset = one.place.offset
    assert read(one.client, one.winner) is UNKNOWN


def test_a_broker_that_does_not_know_a_new_topic_yet_is_not_believed(one: InMemory) -> None:
    """Else a topic that was made again before the micro-batch would count as lost."""
    one.end(commit=False)
    topic = one.broker.cluster.topics[one.query.topic]
    new, old = topic.topic_id, one.place.topic_id.__class__(int=7)
    told = iter([old, old])

    def tell(_: MetadataRequest) -> Action:
        topic.topic_id = next(told, new)
        return Action.HANDLE

    one.broker.control(MetadataRequest, tell, times=None)
    assert read(one.client, one.winner) is ABORTED_


def test_a_leader_that_is_away_is_waited_for(broker: MemoryBroker, topic: str) -> None:
    """The other brokers run, and one of them keeps the decision."""
    trial = in_memory_trial(broker, topic)
    run = trial.query.start()
    winners = run.write(0)
    run.commit(0, winners)
    run = trial.query.start()
    replayed = run.write(0)
    away = error_named("NOT_LEADER_OR_FOLLOWER")
    broker.control(FetchRequest, away, times=20)
    run.commit(0, replayed)
    assert len(broker.requests(FetchRequest)) > 20
    trial.judge()


# -- without the right to read, in memory ----------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_without_the_right_to_read_the_coordinators_exact_word_counts(
    commit: bool, one: InMemory
) -> None:
    denied = error_named("TOPIC_AUTHORIZATION_FAILED")
    one.broker.control(FetchRequest, denied, times=None)
    assert judged(one.client, one.winner) is OPEN
    one.end(commit=commit)
    assert judged(one.client, one.winner) is (COMMITTED_ if commit else ABORTED_)
    one.go_on()
    with pytest.raises(BrokerError, match=f"the user needs READ on topic '{one.query.topic}'"):
        judged(one.client, one.winner)


# -- leaders that answer oddly, in memory ----------------------------------------------------------


def answer(one: InMemory, *batches: bytes, partition: int | None = None) -> FetchResponse:
    where = one.place.topic_partition
    data = PartitionData(
        where.partition if partition is None else partition,
        0,
        high_watermark=1 << 40,
        records=b"".join(batches),
    )
    topic = FetchableTopicResponse(where.topic, one.place.topic_id, [data])
    return FetchResponse(responses=[topic])


def row(one: InMemory, offset: int) -> bytes:
    producer_id, epoch = one.winner.producer
    return encode_batch(
        [Record(value=b"x")],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )


def short_key(one: InMemory) -> bytes:
    return encode_batch(
        [Record(key=b"\0\0\0", value=b"")],
        base_offset=one.place.offset + 1,
        producer_id=one.winner.producer.producer_id,
        transactional=True,
        control=True,
    )


def corrupt(one: InMemory) -> FetchResponse:
    data = bytearray(row(one, one.place.offset))
    data[-1] ^= 1
    return answer(one, bytes(data))


def with_a_short_key(one: InMemory, request: FetchRequest) -> FetchResponse:
    if request.isolation_level:
        return answer(one)
    return answer(one, row(one, one.place.offset), short_key(one))


def endless(one: InMemory, request: FetchRequest) -> FetchResponse:
    if request.isolation_level:
        return answer(one)
    return answer(one, row(one, request.topics[0].partitions[0].fetch_offset))


ODD: dict[str, tuple[Callable[[InMemory, FetchRequest], FetchResponse], type[KafkaError]]] = {
    "nothing": (lambda _, __: FetchResponse(), ProtocolError),
    "no partition": (
        lambda one, _: FetchResponse(
            responses=[FetchableTopicResponse(one.query.topic, one.place.topic_id, [])]
        ),
        ProtocolError,
    ),
    "another partition": (lambda one, _: answer(one, partition=9), ProtocolError),
    "garbage": (lambda one, _: answer(one, b"\xff" * 100), KafkaError),
    "corrupt": (lambda one, _: corrupt(one), CorruptRecordError),
    "a short key": (with_a_short_key, ProtocolError),
    "an error": (lambda _, __: FetchResponse(error_code=-1), KafkaTimeoutError),
    "endless": (endless, KafkaTimeoutError),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_leader_that_answers_oddly(odd: str, one: InMemory) -> None:
    """A typed error comes in time, and nothing is taken for committed or aborted."""
    how, error = ODD[odd]
    one.end()
    one.broker.control(FetchRequest, partial(how, one), times=None)
    began = time.monotonic()
    with pytest.raises(error):
        judged(one.client, one.winner)
    assert time.monotonic() - began < IN_TIME_SECONDS


def test_where_the_log_shows_no_end_the_coordinators_word_counts(one: InMemory) -> None:
    """As for a partition without a leader, to which a coordinator writes no marker."""
    one.end()
    one.broker.control(FetchRequest, lambda _: answer(one), times=None)
    assert judged(one.client, one.winner) is Outcome.COMMITTED
    with pytest.raises(KafkaTimeoutError, match="the log has no end of it"):
        judged(one.client, one.winner._replace(started_at_ms=1))
