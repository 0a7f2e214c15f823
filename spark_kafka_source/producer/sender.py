"""The producer's thread: it sends batches to the leaders of their partitions.

The thread has a single wait, for all connections and all conversations. Sequences keep the order
within a partition, and keep out duplicates:
https://cwiki.apache.org/confluence/display/KAFKA/KIP-98.
"""

import threading
import time
from collections.abc import Sequence
from functools import partial
from uuid import UUID

# The producers of Spark's tasks have no telemetry, and do not import what it needs.
from spark_kafka_source import logs, telemetry
from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.errors import ClosedError, KafkaError, KafkaTimeoutError, LocalError
from spark_kafka_source.net import (
    Address,
    Conversations,
    Deadline,
    Running,
    keep_asking,
    readable,
    wait_of_all,
)
from spark_kafka_source.producer.accumulator import Accumulator
from spark_kafka_source.producer.batch import PartitionQueue, ProducerBatch
from spark_kafka_source.producer.batch_sizes import partition_bytes
from spark_kafka_source.producer.config import Acks, ProducerConfig
from spark_kafka_source.producer.identity import Identity
from spark_kafka_source.producer.leaders import Leaders
from spark_kafka_source.producer.metrics import ProducerMetrics
from spark_kafka_source.producer.produce_answers import ProduceAnswers, RequestInFlight
from spark_kafka_source.producer.sequences import next_sequence
from spark_kafka_source.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from spark_kafka_source.spelling import daemon

logger = logs.logger_of(__name__)

_LONGEST_WAIT_MS = 60_000
# After the deadline the thread fails what is left, which calls callbacks.
_GRACE_SECONDS = 0.25
_SLACK_MS = 30_000


class Sender:
    """Send the batches of an `Accumulator`, in a separate thread."""

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        accumulator: Accumulator,
        identity: Identity,
        metrics: ProducerMetrics,
    ) -> None:
        """`client` serves this thread's requests."""
        self._config = config
        in_flight = config.max_in_flight_requests_per_connection
        # Requests without answers are never in flight. With one at most, each could be alone on
        # another connection; with two, all share one, and keep their order.
        self._most_in_flight = max(2, in_flight) if config.acks is Acks.NONE else in_flight
        self._client = client
        self._accumulator = accumulator
        self._leaders = Leaders(client)
        self._identity = identity
        self._metrics = metrics
        self._answers = ProduceAnswers(config, client, accumulator, identity, metrics)
        self._conversations = Conversations()
        self._askers = [
            self._conversations.begin(keep_asking(asker, client.pause_seconds))
            for asker in (self._leaders.ask, identity.ask)
        ]
        self._telemetry = self._new_telemetry()
        self._requests: list[RequestInFlight] = []
        self._unanswered: set[Address] = set()
        """Brokers that got requests without an answer, over connections that were open then."""
        self._orders = 0
        self._is_closing = False
        self._close_by: Deadline | None = None
        self._wake_at_seconds = 0.0
        self._thread = daemon(self._run, f"producer {config.client.connection.client_id}")
        accumulator.producer_thread = self._thread
        self._thread.start()

    def _new_telemetry(self) -> "telemetry.Telemetry | None":
        if not self._config.telemetry.enable_metrics_push:
            return None
        figures = self._metrics.figures(self._client.cluster)
        name = self._config.transactional_id
        labels = {"transactional_id": name} if name else {}
        return telemetry.Telemetry(self._client, figures, lambda: labels, self._conversations)

    def close(self, deadline: Deadline | None) -> None:
        """Send all batches until the deadline, fail the rest, and wait for that.

        The wait ends a quarter of a second after the deadline, whatever callbacks do: what is left
        fails later. Without a deadline one callback may take `delivery.timeout.ms`, and 30 seconds
        more. In the producer's own thread, as in a callback, it does not wait.
        """
        self._close_by = deadline
        self._is_closing = True
        self._accumulator.wakeup.wake()
        if threading.current_thread() is self._thread:
            return
        if deadline is not None:
            self._thread.join(deadline.remaining_seconds() + _GRACE_SECONDS)
        # Without a callback, no record takes that long.
        patience_seconds = (self._config.delivery_timeout_ms + _SLACK_MS) / 1000
        before, left = -1, self._accumulator.left()
        while deadline is None and self._thread.is_alive() and before != left:
            self._thread.join(patience_seconds)
            before, left = left, self._accumulator.left()
        if self._thread.is_alive():
            text = "The producer's thread is busy, as with a callback. Batches left behind: %s"
            logger.warning(text, self._accumulator.left())
        logs.flush()

    def client_instance_id(self, seconds: float) -> UUID:
        """Return the id by which brokers know this producer, after a wait of so many seconds.

        Any thread may call it, but the producer's own does not wait. Raises `LocalError`,
        `UnsupportedVersionError`, `KafkaTimeoutError`.
        """
        if self._telemetry is None:
            raise LocalError("'kafka.enable.metrics.push' is false: brokers know no metrics of it")
        self._telemetry.ask_for_id()
        self._accumulator.wakeup.wake()
        if threading.current_thread() is not self._thread:
            self._telemetry.settled.wait(seconds)
        return self._telemetry.known_id(int(seconds * 1000))

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        error: KafkaError = ClosedError("the producer was closed before the record was sent")
        try:
            if self._telemetry is not None:
                self._telemetry.attend()
            while not self._is_over():
                self._step()
        except BaseException as fault:  # No error may leave waiting callers without an answer.
            logger.exception("The producer's thread ended")
            error = LocalError(f"the producer's thread ended: {fault!r}")
            error.__cause__ = fault
        self._accumulator.refuse(error)
        self._answers.fail_all(error)
        for request in self._requests:
            request.answer.give_up()
        if self._telemetry is not None:
            self._client.run(self._telemetry.end(self._close_by))
        self._conversations.close()
        self._client.close()

    def _is_over(self) -> bool:
        if not self._is_closing:
            return False
        is_empty = not self._accumulator.queues() and not self._accumulator.parcels()
        return is_empty or (self._close_by is not None and self._close_by.expired)

    def _step(self) -> None:
        self._wake_at_seconds = time.monotonic() + _LONGEST_WAIT_MS / 1000
        for request in self._answered():
            self._requests.remove(request)
            if self._config.acks is Acks.NONE:
                self._unanswered.add(request.broker.address)
            self._answers.handle(request)
        self._wake_at(self._accumulator.place_due_parcels())
        queues = self._accumulator.queues()
        self._identity.note_waiting(queues)
        self._step_conversations()
        for queue in queues:
            self._expire(queue)
        self._fail_refused(queues)
        self._send(queues)
        if self._is_over():  # No event is left that would end a wait.
            return
        unsent = [request for request in self._requests if not request.asked.is_sent]
        self._step_conversations()
        self._wait(unsent)

    def _answered(self) -> list[RequestInFlight]:
        """Return the requests that are over. Requests to one broker keep their order."""
        is_any_done = True
        while is_any_done:
            # The last request first: it may read the answers to the earlier ones.
            answers = [request.answer for request in reversed(self._requests)]
            pending = [answer for answer in answers if not answer.is_done]
            for answer in pending:
                answer.go_on()
            is_any_done = any(answer.is_done for answer in pending)
        late: set[Address] = set()
        answered = []
        for request in self._requests:
            if not request.answer.is_done:
                late.add(request.broker.address)
            elif request.broker.address not in late:
                answered.append(request)
        return answered

    def _step_conversations(self) -> None:
        self._conversations.step()
        for asker in self._askers:
            if asker.is_done:
                asker.result()  # Raises a fault of its own.

    def _wake_at(self, at_seconds: float) -> None:
        self._wake_at_seconds = min(self._wake_at_seconds, at_seconds)

    def _wait(self, unsent: Sequence[RequestInFlight]) -> None:
        """Wait until there is something to do, as once one of these requests is sent.

        Other batches may follow it then. Its answer, which would end a wait, may come late.
        """
        may_go_on = bool(self._answered()) or any(each.asked.is_sent for each in unsent)
        waits = self._conversations.next_wait(), wait_of_all(each.answer for each in self._requests)
        for wait in waits:
            self._wake_at(wait.until.at_seconds)
        if self._close_by is not None:
            self._wake_at(self._close_by.at_seconds)
        wakeup = self._accumulator.wakeup
        if not may_go_on:
            until = Deadline(self._wake_at_seconds, _LONGEST_WAIT_MS)
            readable([wakeup, *(thing for wait in waits for thing in wait.sockets)], until)
        wakeup.clear()

    # -- sending -----------------------------------------------------------------------------------

    def _expire(self, queue: PartitionQueue) -> None:
        """Fail batches that are not written within `delivery.timeout.ms`."""
        timeout_ms = self._config.delivery_timeout_ms
        oldest_seconds = time.monotonic() - timeout_ms / 1000
        for batch in self._accumulator.batches(queue):
            if batch.is_finished:
                continue
            if batch.created_at_seconds > oldest_seconds:
                self._wake_at(batch.created_at_seconds + timeout_ms / 1000)
                continue
            found = f"{batch.record_count} records were not written within {timeout_ms} ms"
            topic = batch.topic_partition.topic
            why = batch.error or self._identity.last_error or self._leaders.error(topic)
            said = f"the last error: {why}" if why else "no leader has answered"
            where = f"{batch.topic_partition}: {found} ('kafka.delivery.timeout.ms')"
            self._answers.fail(queue, batch, KafkaTimeoutError(f"{where}; {said}"))
        self._accumulator.drop(queue, lambda batch: not batch.is_finished)

    def _fail_refused(self, queues: Sequence[PartitionQueue]) -> None:
        """Fail batches that can never be written: a topic is denied, or the producer is."""
        refusal = self._identity.refusal()
        denials = self._leaders.take_denials()
        for queue in queues:
            error = refusal or denials.get(queue.topic_partition.topic)
            if error is None:
                continue
            self._accumulator.head(queue)
            for batch in self._accumulator.drop(queue, lambda _: False):
                self._answers.fail(queue, batch, error)

    def _send(self, queues: Sequence[PartitionQueue]) -> None:
        for broker, led in self._ready(queues).items():
            if self._has_hung_up(broker):
                self._client.cluster.forget_leaders_of(queue.topic_partition.topic for queue in led)
                self._wake_at(0.0)
                continue
            led.sort(key=lambda queue: queue.waiting[0].created_at_seconds)
            while self._has_room(broker):
                drained = self._drain(led)
                self._request(broker, drained)
                del led[: len(drained)]
                # The other partitions have not changed, and there may be hundreds.
                led.extend(self._ready([queue for queue, _ in drained]).get(broker, ()))
                if not led:
                    break

    def _has_hung_up(self, broker: Broker) -> bool:
        """Whether the broker closed the connection with `acks=0`: then it may no longer lead.

        With `acks=0` a broker has no other way to report an error.
        """
        if self._config.acks is not Acks.NONE or broker.address not in self._unanswered:
            return False
        if self._client.connections.has_shared(broker.address):
            return False
        self._unanswered.remove(broker.address)
        return True

    def _ready(self, queues: Sequence[PartitionQueue]) -> dict[Broker, list[PartitionQueue]]:
        """Return the queues whose next batch can go out now, by the leader that it goes to."""
        waiting = [queue for queue in queues if not queue.is_empty and self._has_next(queue)]
        leaders = self._leaders.of([queue.topic_partition for queue in waiting])
        ready: dict[Broker, list[PartitionQueue]] = {}
        for queue in waiting:
            where = queue.topic_partition
            leader = leaders.get(where)
            in_flight = [request for request in self._requests if where in request.batches]
            if leader is not None and all(request.broker == leader for request in in_flight):
                ready.setdefault(leader, []).append(queue)
        return ready

    def _has_next(self, queue: PartitionQueue) -> bool:
        """Whether the queue has a batch that may go out now, to whichever leader."""
        head = self._accumulator.head(queue)
        if head is None:
            opened = queue.open  # Another thread may close it at any time.
            if opened is not None and not queue.waiting:
                self._wake_at(self._accumulator.ready_at_seconds(opened))
            return False
        if head.encoded is None and head.error is not None:
            self._answers.fail(queue, self._accumulator.pop_head(queue), head.error)
            self._wake_at(0.0)
            return False
        return self._is_turn_of(head, queue)

    def _is_turn_of(self, head: ProducerBatch, queue: PartitionQueue) -> bool:
        """Whether a batch may go out before the other batches of its partition are answered."""
        if head.retry_at_seconds > time.monotonic():
            self._wake_at(head.retry_at_seconds)
            return False
        # If a batch failed, the batches in flight behind it fail, too. All must come back first.
        most = 1 if head.tries else self._config.max_in_flight_requests_per_connection
        if len(queue.in_flight) >= min(most, queue.most_in_flight):
            return False
        return self._identity.may_send(queue.topic_partition)

    def _has_room(self, broker: Broker) -> bool:
        throttled_seconds = self._client.connections.throttled_seconds(broker.address)
        if throttled_seconds:
            self._wake_at(time.monotonic() + throttled_seconds)
            return False
        requests = [each for each in self._requests if each.broker.address == broker.address]
        if not requests:
            return True
        # Another request would make another connection before this one is made.
        return all(each.asked.is_sent for each in requests) and self._client.connections.has_room(
            broker.address, self._most_in_flight
        )

    def _drain(self, led: list[PartitionQueue]) -> list[tuple[PartitionQueue, ProducerBatch]]:
        """Take one batch of each partition, as many as fit into a request."""
        drained: list[tuple[PartitionQueue, ProducerBatch]] = []
        size = self._accumulator.sizes.overhead
        for queue in led:
            encoded = queue.waiting[0].encoded
            size += partition_bytes(queue.topic_partition.topic)
            size += encoded.size if encoded is not None else 0
            if drained and size > self._config.max_request_size:
                break
            drained.append((queue, self._numbered(queue, self._accumulator.pop_head(queue))))
        return drained

    def _numbered(self, queue: PartitionQueue, batch: ProducerBatch) -> ProducerBatch:
        """Give a batch its order and its sequence, unless it has them already."""
        queue.in_flight.append(batch)
        batch.is_sent = True
        if not batch.order:
            self._orders += 1
            batch.order = self._orders
        producer = self._identity.producer_of(queue)
        if producer is not None and batch.producer != producer:
            batch.producer, batch.base_sequence = producer, queue.next_sequence
            queue.next_sequence = next_sequence(queue.next_sequence, batch.record_count)
        return batch

    def _request(self, broker: Broker, drained: list[tuple[PartitionQueue, ProducerBatch]]) -> None:
        connection = self._config.client.connection
        transactional_id = self._identity.transactional_id
        is_transactional = transactional_id is not None
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for queue, batch in drained:
            topic, partition = queue.topic_partition
            data = PartitionProduceData(index=partition, records=batch.pieces(is_transactional))
            by_topic.setdefault(topic, []).append(data)
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=self._config.acks,
            timeout_ms=connection.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=name, partition_data=data) for name, data in by_topic.items()
            ],
        )
        sent = self._client.ask(
            request,
            broker,
            Deadline.after_ms(connection.request_timeout_ms),
            most_in_flight=self._most_in_flight,
            max_version=self._identity.last_produce_version,
        )
        batches = {queue.topic_partition: batch for queue, batch in drained}
        still_leads = partial(self._client.still_leads, broker, list(batches))
        answer = Running(self._client.answer_of(sent, still_leads))
        self._requests.append(RequestInFlight(sent, broker, batches, answer, time.monotonic()))
        self._metrics.sent(batches.values())
