"""Transactions: calls in any order, the state after failures, and no leftovers after the end."""

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    KafkaError,
    KafkaTimeoutError,
    LocalError,
    error_named,
)
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.producer import (
    KafkaProducer,
    ProducerFencedError,
    SendFuture,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionStateError,
    transaction_coordinator,
)
from spark_kafka_source.producer import transaction as transaction_module
from spark_kafka_source.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdRequest,
    ProduceRequest,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.consumer.consumers import eventually
from tests.producer.blocking import is_pausing
from tests.producer.transactional import begin_as
from tests.producer.writing import (
    HOUR_MS,
    IN_TIME,
    T0,
    answering,
    blocking_for,
    committed_values,
    headers,
    in_flight,
    producing,
)

pytestmark = pytest.mark.memory(topics={"t": 1})

PATIENT: dict[str, Any] = {"linger_ms": HOUR_MS, "delivery_timeout_ms": 2 * HOUR_MS}
GROUP = Member("g", "", -1)
DENIED = error_named("TOPIC_AUTHORIZATION_FAILED")


def transactional(broker: MemoryBroker, **settings: Any) -> Any:
    return producing(broker, transactional_id="x", **settings)


def begun(producer: KafkaProducer) -> None:
    producer.init_transactions()
    producer.begin_transaction()


def committed(broker: MemoryBroker, topic: str = "t") -> list[bytes | None]:
    """Return the first partition's values for a `read_committed` reader."""
    return committed_values(broker.cluster.topics[topic].logs[0])


def state(broker: MemoryBroker) -> str:
    found: str = broker.cluster.transactions["x"].state
    return found


def error_of(future: SendFuture) -> Any:
    return future.exception(IN_TIME)


# -- writes ----------------------------------------------------------------------------------------


def test_a_transaction_is_seen_once_it_is_committed(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        assert committed(broker) == []
        producer.commit_transaction()
        assert committed(broker) == [b"0"]
        producer.begin_transaction()
        producer.send("t", b"1")
        producer.commit_transaction()
    assert committed(broker) == [b"0", b"1"]
    batches = [each for each in headers(broker.cluster.topics["t"].logs[0]) if not each.is_control]
    assert [(each.producer_epoch, each.base_sequence) for each in batches] == [(0, 0), (0, 1)]
    assert all(each.is_transactional for each in batches)
    assert {each.transactional_id for each in broker.requests(ProduceRequest)} == {"x"}


def test_an_aborted_transaction_is_not_seen_and_the_next_one_is(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"no").result(IN_TIME)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"yes")
        producer.commit_transaction()
    assert committed(broker) == [b"yes"]
    assert len(broker.requests(InitProducerIdRequest)) == 1, "nothing was lost"


def test_a_transaction_without_a_record_ends_without_a_word(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.abort_transaction()
    assert not broker.requests(EndTxnRequest)


def test_partitions_are_added_once_a_transaction_before_their_records(broker: MemoryBroker) -> None:
    broker.create_topic("many", 2)
    with transactional(broker) as producer:
        begun(producer)
        for _ in range(2):
            for partition in (0, 1):
                producer.send("many", b"", partition=partition).result(IN_TIME)
            producer.send("many", b"", partition=0).result(IN_TIME)
            producer.commit_transaction()
            producer.begin_transaction()
    added = [
        (topic.name, each)
        for request in broker.requests(AddPartitionsToTxnRequest)
        for topic in request.v3_and_below_topics
        for each in topic.partitions
    ]
    assert added == [("many", 0), ("many", 1)] * 2


def test_columns_add_all_of_their_partitions_by_one_request(broker: MemoryBroker) -> None:
    broker.create_topic("many", 8)
    columns = pa.table({"value": [b"v"] * 8, "partition": range(8)})
    with transactional(broker, linger_ms=0) as producer:
        begun(producer)
        for _ in range(2):
            producer.send_columns("many", columns)
            producer.commit_transaction()
            producer.begin_transaction()
    added = [
        [(topic.name, sorted(topic.partitions)) for topic in request.v3_and_below_topics]
        for request in broker.requests(AddPartitionsToTxnRequest)
    ]
    assert added == [[("many", list(range(8)))]] * 2


def test_records_that_get_no_place_keep_their_transaction_from_a_commit(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        with monkeypatch.context() as context:
            context.setattr("spark_kafka_source.producer.placing.TopicPartition", None)
            lost = producer.send("t", b"1")
            assert "records of topic 't': TypeError" in str(error_of(lost))
        with pytest.raises(LocalError, match="records of topic 't'"):
            producer.commit_transaction()
        producer.abort_transaction()
        assert producer.metrics()["record-error-total"] == 1
    assert committed(broker) == []


def test_offsets_are_committed_with_the_transaction(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0")
        producer.send_offsets_to_transaction({T0: OffsetAndMetadata(7)}, GROUP)
        assert T0 not in broker.cluster.committed.get("g", {})
        producer.commit_transaction()
        assert broker.cluster.committed["g"][T0] == 7
        producer.begin_transaction()
        producer.send_offsets_to_transaction({T0: OffsetAndMetadata(9)}, GROUP)
        producer.abort_transaction()
    assert broker.cluster.committed["g"][T0] == 7


# -- calls in the wrong order ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "call", "said"),
    [
        ("", "begin_transaction", "`init_transactions` was not called yet"),
        ("", "commit_transaction", "`init_transactions` was not called yet"),
        ("", "abort_transaction", "`init_transactions` was not called yet"),
        ("", "send", "`init_transactions` was not called yet"),
        ("", "offsets", "`init_transactions` was not called yet"),
        ("init", "init_transactions", "no transaction is open"),
        ("init", "commit_transaction", "no transaction is open"),
        ("init", "abort_transaction", "no transaction is open"),
        ("init", "send", "a record cannot be sent: no transaction is open"),
        ("init", "columns", "a record cannot be sent: no transaction is open"),
        ("init", "offsets", "no transaction is open"),
        ("begin", "begin_transaction", "a transaction is open"),
        ("begin", "init_transactions", "a transaction is open"),
    ],
)
def test_a_call_that_does_not_fit_says_what_is_the_matter(
    broker: MemoryBroker, before: str, call: str, said: str
) -> None:
    with transactional(broker) as producer:
        calls: dict[str, Callable[[], object]] = {
            "send": lambda: producer.send("t", b""),
            "columns": lambda: producer.send_columns("t", pa.table({"value": [b""]})),
            "offsets": lambda: producer.send_offsets_to_transaction({}, GROUP),
        }
        if before:
            producer.init_transactions()
        if before == "begin":
            producer.begin_transaction()
        with pytest.raises(TransactionStateError) as caught:
            calls.get(call, getattr(producer, call, None))()  # type: ignore[misc]
        assert said in str(caught.value)
        assert producer.partitions_for("t")


def test_one_thread_at_a_time_begins_and_ends(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"").result(IN_TIME)
        held = broker.hold(EndTxnRequest)
        thread = threading.Thread(target=producer.commit_transaction, daemon=True)
        thread.start()
        broker.wait_for(EndTxnRequest)
        with pytest.raises(TransactionStateError, match="another thread begins or ends"):
            producer.abort_transaction()
        with pytest.raises(TransactionStateError, match="a commit is not over"):
            producer.send("t", b"")
        held.release()
        thread.join()
        producer.begin_transaction()


def test_what_is_sent_while_a_commit_waits_is_refused(broker: MemoryBroker) -> None:
    """Otherwise such a record could reach the leader after the transaction's end."""
    with transactional(broker) as producer:
        begun(producer)
        held = broker.hold(ProduceRequest)
        producer.send("t", b"0")
        thread = threading.Thread(target=producer.commit_transaction, daemon=True)
        thread.start()
        eventually(lambda: producer._accumulator._flushing == 1)
        with pytest.raises(TransactionStateError, match="about to end"):
            producer.send("t", b"1")
        # The accumulator refuses a record whose `send` was in progress when the commit began.
        producer._transaction.check_open = lambda: None
        with pytest.raises(TransactionStateError, match="about to end"):
            producer.send("t", b"2")
        held.release()
        thread.join()
    assert committed(broker) == [b"0"]


def test_a_commit_that_is_interrupted_can_be_called_again(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0")
        flush = producer._accumulator.flush

        def interrupted(_: object) -> bool:
            raise KeyboardInterrupt

        producer._accumulator.flush = interrupted
        with pytest.raises(KeyboardInterrupt):
            producer.commit_transaction()
        producer._accumulator.flush = flush
        producer.send("t", b"1")
        producer.commit_transaction()
    assert committed(broker) == [b"0", b"1"]


def test_a_callback_cannot_end_the_transaction_that_waits_for_it(broker: MemoryBroker) -> None:
    told: list[str] = []

    def end(*_: object) -> None:
        try:
            producer.commit_transaction()
        except KafkaError as error:
            told.append(str(error))

    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0", on_delivery=end).result(IN_TIME)
        eventually(lambda: bool(told))
        producer.commit_transaction()
    assert "a callback of the producer cannot wait" in told[0]


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls_commit", [True, False])
def test_after_a_failed_record_only_an_abort_is_left_and_the_next_transaction_works(
    broker: MemoryBroker, calls_commit: bool
) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        broker.control(ProduceRequest, answering("POLICY_VIOLATION"))
        failed = producer.send("t", b"1")
        error = error_of(failed)
        assert isinstance(error, BrokerError)
        with pytest.raises(TransactionStateError, match="has failed and must be aborted"):
            producer.send("t", b"2")
        for _ in range(2 * calls_commit):
            with pytest.raises(BrokerError) as caught:
                producer.commit_transaction()
            assert caught.value is error
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"3")
        producer.commit_transaction()
    assert committed(broker) == [b"3"]


def test_a_record_that_fails_while_a_commit_waits_fails_the_commit(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        broker.control(ProduceRequest, answering("POLICY_VIOLATION"))
        producer.send("t", b"0")
        with pytest.raises(BrokerError, match="POLICY_VIOLATION"):
            producer.commit_transaction()
        assert not broker.requests(EndTxnRequest)
        producer.abort_transaction()
    assert state(broker) != "Ongoing"


def test_records_that_are_named_as_invalid_fail_the_commit(broker: MemoryBroker) -> None:
    every = [BatchIndexAndErrorMessage(each, "bad") for each in range(2)]
    with transactional(broker, **PATIENT) as producer:
        begun(producer)
        broker.control(ProduceRequest, answering("INVALID_RECORD", record_errors=every))
        futures = [producer.send("t", b"") for _ in range(2)]
        with pytest.raises(BrokerError, match="INVALID_RECORD"):
            producer.commit_transaction()
        assert all("bad" in str(error_of(each)) for each in futures)
        producer.abort_transaction()
    assert not committed(broker)


@pytest.mark.parametrize(
    "error", ["OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_EPOCH"]
)
def test_within_a_transaction_lost_sequences_fail_it_and_the_next_has_a_new_epoch(
    broker: MemoryBroker, error: str
) -> None:
    with transactional(broker, batch_size=1) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        held = broker.hold(ProduceRequest, then=answering(error))
        futures = [producer.send("t", b"%d" % each) for each in (1, 2, 3)]
        in_flight(producer, 3)
        held.release()
        assert error in str(error_of(futures[0]))
        assert all(isinstance(error_of(each), BrokerError) for each in futures)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"4")
        producer.commit_transaction()
    assert committed(broker) == [b"4"]
    last = [each for each in headers(broker.cluster.topics["t"].logs[0]) if not each.is_control][-1]
    assert last.base_sequence == 0
    assert last.producer_epoch >= 1


def test_an_abort_drops_what_is_not_sent_and_tells_why(broker: MemoryBroker) -> None:
    with transactional(broker, **PATIENT) as producer:
        begun(producer)
        sent = producer.send("t", b"0")
        producer.flush(IN_TIME)
        waiting = producer.send("t", b"1")
        producer.abort_transaction()
        assert sent.result(0).offset == 0
        error = error_of(waiting)
        assert isinstance(error, TransactionAbortedError)
        assert "its transaction is aborted" in str(error)
        producer.begin_transaction()
        producer.send("t", b"2")
        producer.commit_transaction()
    assert committed(broker) == [b"2"]
    assert len(broker.requests(InitProducerIdRequest)) == 1, "no sequence was lost"


def test_an_abort_in_the_midst_of_a_retry_begins_the_sequences_anew(broker: MemoryBroker) -> None:
    pauses = {"retry_backoff_ms": HOUR_MS, "retry_backoff_max_ms": HOUR_MS}
    with transactional(broker, **pauses) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        broker.control(ProduceRequest, answering("NOT_ENOUGH_REPLICAS"))
        retried = producer.send("t", b"1")
        queue = producer._accumulator.queue(T0)
        eventually(lambda: bool(queue.waiting and queue.waiting[0].tries))
        client = producer._transaction._client
        client._retry = type(client._retry)(1, 1)
        producer.abort_transaction()
        assert isinstance(error_of(retried), TransactionAbortedError)
        producer.begin_transaction()
        producer.send("t", b"2")
        producer.commit_transaction()
    assert committed(broker) == [b"2"]


def test_an_abort_waits_for_what_is_in_flight(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        held = broker.hold(ProduceRequest)
        future = producer.send("t", b"0")
        broker.wait_for(ProduceRequest)
        thread = threading.Thread(target=producer.abort_transaction, daemon=True)
        thread.start()
        eventually(lambda: producer._accumulator._flushing == 1)
        assert not broker.requests(EndTxnRequest)
        held.release()
        thread.join()
        assert future.result(0).offset == 0
    assert not committed(broker)
    assert state(broker) == "CompleteAbort"


def test_partitions_that_are_being_added_do_not_begin_the_next_transaction(
    broker: MemoryBroker,
) -> None:
    with transactional(broker) as producer:
        begun(producer)
        held = broker.hold(AddPartitionsToTxnRequest)
        future = producer.send("t", b"0")
        broker.wait_for(AddPartitionsToTxnRequest)
        thread = threading.Thread(target=producer.abort_transaction, daemon=True)
        thread.start()
        assert isinstance(error_of(future), TransactionAbortedError)
        assert not broker.requests(EndTxnRequest)
        held.release()
        thread.join()
        assert state(broker) == "CompleteAbort"
        producer.begin_transaction()
        producer.send("t", b"1")
        producer.commit_transaction()
    assert committed(broker) == [b"1"]
    assert len(broker.requests(AddPartitionsToTxnRequest)) == 2


def test_a_topic_that_is_denied_fails_the_transaction_and_not_the_producer(
    broker: MemoryBroker,
) -> None:
    broker.create_topic("other")
    with transactional(broker) as producer:
        begun(producer)
        broker.control(AddPartitionsToTxnRequest, DENIED)
        error = error_of(producer.send("t", b"0"))
        assert isinstance(error, TransactionAbortableError)
        assert "needs WRITE on topic 't'" in str(error)
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("other", b"1")
        producer.commit_transaction()
    assert committed(broker, "other") == [b"1"]


@pytest.mark.parametrize("answer", [Action.CLOSE, Action.LOSE])
def test_where_nobody_knows_whether_it_has_begun_the_abort_finds_out(
    broker: MemoryBroker, answer: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_module, "LOOKUP_MS", 10)
    with transactional(broker) as producer:
        begun(producer)
        broker.control(AddPartitionsToTxnRequest, answer, times=None)
        producer.send("t", b"0")
        eventually(lambda: producer._transaction.last_error is not None)
        broker.forget()
        producer.abort_transaction()
        producer.begin_transaction()
        monkeypatch.undo()
        producer.send("t", b"1")
        producer.commit_transaction()
    assert committed(broker) == [b"1"]


def test_partitions_that_cannot_be_added_yet_are_asked_about_after_a_pause(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A look-up gives up before a pause that is longer than its remaining time.
    monkeypatch.setattr(transaction_coordinator, "_FIRST_PAUSE_MS", HOUR_MS)
    pauses = {"retry_backoff_ms": HOUR_MS, "retry_backoff_max_ms": HOUR_MS}
    with transactional(broker, **pauses) as producer:
        begun(producer)
        broker.control(AddPartitionsToTxnRequest, Action.CLOSE, times=None)
        producer.send("t", b"0")
        eventually(lambda: is_pausing(producer._sender._conversations))
        assert len(broker.requests(AddPartitionsToTxnRequest)) == 1


def test_a_commit_without_an_answer_can_be_called_again_and_nothing_else_can(
    broker: MemoryBroker,
) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        broker.control(EndTxnRequest, Action.SILENCE, times=None)
        with blocking_for(producer, 100), pytest.raises(KafkaTimeoutError):
            producer.commit_transaction()
        broker.forget()
        for call in (producer.abort_transaction, producer.begin_transaction):
            with pytest.raises(TransactionStateError, match="call `commit_transaction` again"):
                call()
        producer.commit_transaction()
        assert committed(broker) == [b"0"]
        producer.begin_transaction()
        producer.send("t", b"1")
        producer.commit_transaction()
    assert committed(broker) == [b"0", b"1"]


def test_an_abort_without_an_answer_can_be_called_again(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        broker.control(EndTxnRequest, Action.SILENCE, times=None)
        with blocking_for(producer, 100), pytest.raises(KafkaTimeoutError):
            producer.abort_transaction()
        broker.forget()
        with pytest.raises(TransactionStateError, match="call `abort_transaction` again"):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()


@pytest.mark.parametrize(
    ("request_type", "error", "kind"),
    [
        (AddOffsetsToTxnRequest, "GROUP_AUTHORIZATION_FAILED", TransactionAbortableError),
        (TxnOffsetCommitRequest, "ILLEGAL_GENERATION", TransactionAbortableError),
        (TxnOffsetCommitRequest, "FENCED_INSTANCE_ID", TransactionAbortableError),
    ],
)
def test_offsets_that_cannot_be_committed_fail_the_transaction_alone(
    broker: MemoryBroker, request_type: Any, error: str, kind: type[KafkaError]
) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0").result(IN_TIME)
        broker.control(request_type, error_named(error))
        with pytest.raises(kind, match=error):
            producer.send_offsets_to_transaction({T0: OffsetAndMetadata(7)}, GROUP)
        with pytest.raises(kind, match=error):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({T0: OffsetAndMetadata(8)}, GROUP)
        producer.commit_transaction()
    assert broker.cluster.committed["g"][T0] == 8
    assert not committed(broker)


# -- the end of a producer -------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["commit_transaction", "abort_transaction", "send"])
def test_a_producer_whose_id_another_has_taken_is_at_its_end(
    broker: MemoryBroker, call: str
) -> None:
    with transactional(broker) as first, transactional(broker) as second:
        begun(first)
        first.send("t", b"no").result(IN_TIME)
        begun(second)
        second.send("t", b"yes").result(IN_TIME)
        if call == "send":
            assert isinstance(error_of(first.send("t", b"no")), BrokerError)
            call = "abort_transaction"
        with pytest.raises(ProducerFencedError, match="another producer has begun with this"):
            getattr(first, call)()
        for over in (first.abort_transaction, first.begin_transaction, lambda: first.send("t")):
            with pytest.raises(ProducerFencedError):
                over()
        second.commit_transaction()
    assert committed(broker) == [b"yes"]


def test_what_ends_the_producer_fails_what_waits(broker: MemoryBroker) -> None:
    error = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    with transactional(broker) as producer:
        begun(producer)
        broker.control(AddPartitionsToTxnRequest, error)
        found = error_of(producer.send("t", b"0"))
        assert isinstance(found, BrokerError)
        assert found.error == error
        with pytest.raises(BrokerError) as caught:
            producer.commit_transaction()
        assert caught.value is found


def test_without_the_right_to_the_id_nothing_begins(broker: MemoryBroker) -> None:
    broker.control(InitProducerIdRequest, error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"))
    with transactional(broker) as producer:
        with pytest.raises(BrokerError, match="needs WRITE on transactional id 'x'"):
            producer.init_transactions()
        with pytest.raises(BrokerError, match="needs WRITE on transactional id 'x'"):
            producer.begin_transaction()


def test_no_coordinator_in_time_names_what_was_tried_and_it_can_be_tried_again(
    broker: MemoryBroker,
) -> None:
    with transactional(broker) as producer:
        broker.control(InitProducerIdRequest, Action.SILENCE, times=None)
        said = pytest.raises(KafkaTimeoutError, match="InitProducerId of transactional id 'x'")
        producer.partitions_for("t")
        with blocking_for(producer, 300), said:
            producer.init_transactions()
        broker.forget()
        producer.init_transactions()


def test_a_producer_that_is_closed_leaves_its_transaction_open(broker: MemoryBroker) -> None:
    with transactional(broker, **PATIENT) as producer:
        begun(producer)
        future = producer.send("t", b"0")
        producer.close()
        assert future.result(0).offset == 0
    assert state(broker) == "Ongoing"
    assert not committed(broker)


# -- transactions that other producers end ---------------------------------------------------------


def test_another_id_counts_only_once_it_is_there(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begun(producer)
        producer.send("t", b"0")
        producer.commit_transaction()
        broker.control(InitProducerIdRequest, Action.SILENCE, times=None)
        # A client of its own asks, and may not even reach a broker in time.
        too_late = pytest.raises((BootstrapError, KafkaTimeoutError))
        with blocking_for(producer, 100), too_late:
            begin_as(producer, "y", 1_000)
        broker.forget()
        producer.begin_transaction()
        producer.send("t", b"1")
        producer.commit_transaction()
        begin_as(producer, "y", 1_000)
        producer.send("t", b"2")
        prepared = producer.prepare_transaction()
        assert prepared is not None
        assert prepared.transactional_id == "y"
    assert committed(broker) == [b"0", b"1"]
    assert broker.cluster.transactions["y"].state == "Ongoing"
    assert broker.cluster.transactions["y"].timeout_ms == 1_000


def test_nothing_is_prepared_where_nothing_was_sent(broker: MemoryBroker) -> None:
    with transactional(broker) as producer:
        begin_as(producer, "y", 1_000)
        assert producer.prepare_transaction() is None
        begin_as(producer, "z", 1_000)
        producer.send("t", b"0")
        broker.control(ProduceRequest, answering("POLICY_VIOLATION"))
        with pytest.raises(BrokerError, match="POLICY_VIOLATION"):
            producer.prepare_transaction()
        producer.abort_transaction()
        begin_as(producer, "z", 1_000)
