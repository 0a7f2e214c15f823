"""The reader of logs: it finds leaders, checks logs, and fetches from each position on."""

import time
from collections.abc import Callable

from spark_kafka_source.client import LOOKUP_MS, UNKNOWN_TOPIC, KafkaClient, NextTry, Topic
from spark_kafka_source.errors import BrokerError, CorruptRecordError, KafkaError, KafkaTimeoutError
from spark_kafka_source.fetch.answers import Answers
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.error_handler import ErrorHandler
from spark_kafka_source.fetch.fetcher import FetchDone, Fetcher
from spark_kafka_source.fetch.position_checks import PositionChecks
from spark_kafka_source.fetch.positions import Fetched, Position, Positions
from spark_kafka_source.net import Conversation, Conversations, Deadline, HasFileno, Running, Wait
from spark_kafka_source.records import RecordLimit

Describe = Callable[[list[str], Deadline], Conversation[list[Topic]]]
"""A function that asks once for topics, as `KafkaClient.topics` does."""


# The way of records, from a position to rows:
#
#   Position          `look` finds its leader, and checks the leader's log (KIP-320)
#      | fetch_offset
#      v
#   FetchRequest      Fetcher.ask: one in flight to each broker, for all its partitions;
#      |              FetchSession sends only what has changed (KIP-227)
#      v
#   FetchResponse     Fetcher.take: Answers.put drops data that no longer fits the position
#      |
#      v
#   Fetched           in Position.fetched, at most two answers ahead
#      | chunks
#      v
#   Chunk             a batch or several: checked, decompressed, cut to the position and the end
#      |
#      v
#   rows              records.columns, for Spark and for a consumer
#
# `extend_deadlines` of the fetcher comes first if the caller was busy with rows for long.
class LogReader:
    """A reader that keeps the `fetched` of `positions` filled.

    Call `look`, and `ask` and `take` of the `fetcher`, in turn, and wait by `waits` between. No
    method waits. `conversations` has the look-ups. `error_handler` moves positions whose records
    are lost. See `Fetcher` for `keeps_sessions`. `describe` asks for topics with unknown leaders.
    """

    def __init__(
        self,
        client: KafkaClient,
        config: FetchConfig,
        error_handler: ErrorHandler,
        conversations: Conversations,
        *,
        limit: RecordLimit,
        keeps_sessions: bool,
        on_fetch: Callable[[FetchDone], None] = lambda _: None,
        describe: Describe | None = None,
    ) -> None:
        self.positions = Positions(client.pause_seconds)
        self._client = client
        self._error_handler = error_handler
        self._conversations = conversations
        self._checks = PositionChecks(client, self.positions, error_handler, conversations)
        answers = Answers(client, config, limit, error_handler, self._checks.out_of_range)
        self.fetcher = Fetcher(
            client,
            config,
            self.positions,
            answers,
            error_handler,
            keeps_sessions=keeps_sessions,
            on_done=on_fetch,
        )
        self._describe = describe or client.topics
        self._topics: Running[list[Topic]] | None = None
        self._topics_ms = min(LOOKUP_MS, client.config.default_api_timeout_ms)
        self._next_topics = NextTry(client.pause_seconds)
        self._looked_at_seconds = 0.0

    def look(self) -> None:
        """Go on with look-ups: find unknown leaders, and check the logs of new leaders.

        Raises lasting errors. The error handler gets the others, and a later call tries again.
        """
        self._looked_at_seconds = time.monotonic()
        self._conversations.step()
        for step in (self._find_leaders, self._checks.look, self._checks.take):
            self.step(step)

    def step(self, step: Callable[[], None]) -> None:
        """Take a step of `look`. Raises lasting errors."""
        try:
            step()
        except KafkaError as error:
            if not _may_heal(error):
                raise
            self._error_handler.failed(error)

    def waits(self, deadline: Deadline) -> Wait:
        """Return the wait for something to take or to try again, up to the deadline."""
        asked, next_try_seconds = self._conversations.next_wait(), self.next_try_seconds()
        fetches = self.fetcher.in_flight
        until = Deadline.first(deadline, asked.until, *(fetch.deadline for fetch in fetches))
        if next_try_seconds is not None and next_try_seconds < until.at_seconds:
            until = Deadline(next_try_seconds, until.timeout_ms)
        things: list[HasFileno] = [*fetches, *asked.sockets]
        return Wait(things, until)

    @property
    def awaits_answers(self) -> bool:
        """Whether an answer to a fetch or a look-up is still to come."""
        return bool(self.fetcher.in_flight) or not self._conversations.is_idle

    def next_try_seconds(self) -> float | None:
        """Return the time of the next action that needs no answer, or None."""
        moments = [self.fetcher.next_try_seconds(self._looked_at_seconds)]
        if self._topics is None and self._unknown_topics():
            moments.append(self._next_topics.at_seconds)
        if self._checks.is_due:
            moments.append(self._looked_at_seconds)
        return min((moment for moment in moments if moment is not None), default=None)

    def is_ready(self, position: Position) -> bool:
        """Return whether the position has records to hand out.

        Records that were fetched ahead may come from a log that was truncated since. So a new
        leader is asked first.
        """
        is_held = position.paused or position.is_held
        return bool(position.fetched) and not is_held and not self._checks.is_in_doubt(position)

    def ask_for_more(self, position: Position, fetched: Fetched, batch_bytes: int) -> None:
        """Make the position's fetches larger, after one that did not bring one whole batch.

        Since KIP-74 a broker sends the first batch whole. Raises `CorruptRecordError` if the batch
        was cut though the fetch had room for it, or if it is larger than any fetch may be.
        """
        most_bytes = self._client.config.connection.max_response_bytes // 2
        if not fetched.asked_bytes < batch_bytes <= most_bytes:
            raise CorruptRecordError(
                position.topic_partition,
                fetched.offset,
                f"a record batch of {batch_bytes} bytes did not come whole; asked for "
                f"{fetched.asked_bytes} bytes, and for at most {most_bytes}",
            )
        position.batch_bytes = batch_bytes

    # -- leaders -----------------------------------------------------------------------------------

    def _unknown_topics(self) -> list[str]:
        """Return topics with unknown leaders. A leader whose fetch is overdue counts as unknown."""
        self._client.cluster.forget_leaders_of(self.fetcher.overdue_topics())
        return self._client.unknown_topics(self.positions.partitions)

    def _find_leaders(self) -> None:
        """Look up topics with unknown leaders, with a pause between two look-ups."""
        if self._topics is None:
            unknown = self._unknown_topics()
            if not unknown:
                self._next_topics.succeeded()
            elif self._next_topics.is_due:
                self._next_topics.failed()  # It counts as one in vain until all leaders are known.
                deadline = Deadline.after_ms(self._topics_ms)
                self._topics = self._conversations.begin(self._describe(unknown, deadline))
        if self._topics is not None and self._topics.is_done:
            lookup, self._topics = self._topics, None
            self._error_handler.described(lookup.result())
            self._tell_missing()

    def _tell_missing(self) -> None:
        """Tell the error handler which partitions have no leader. Raises lasting errors."""
        for position in self.positions:
            try:
                self._client.cluster.leader(position.topic_partition)
            except BrokerError as error:
                if not error.retriable:
                    raise
                self._error_handler.failed(error, position)


def _may_heal(error: KafkaError) -> bool:
    is_unknown = isinstance(error, BrokerError) and error.error in UNKNOWN_TOPIC
    return error.retriable or is_unknown or isinstance(error, KafkaTimeoutError)
