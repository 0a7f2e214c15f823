"""Look-ups of one kind for positions. Each answer is used as soon as it comes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.positions import Position, Positions
from spark_kafka_source.net import Conversation, Conversations, Running
from spark_kafka_source.topic_partition import TopicPartition

Q = TypeVar("Q")
A = TypeVar("A")

Question: TypeAlias = Callable[
    [Mapping[TopicPartition, Q], dict[TopicPartition, A]], Conversation[None]
]
"""A conversation about some partitions, which puts each answer into the second argument."""


class _Lookup(NamedTuple, Generic[Q, A]):
    """One look-up for several positions. It fills `answers`; `asked` has the rest."""

    running: Running[None]
    asked: dict[TopicPartition, tuple[Position, Q]]
    answers: dict[TopicPartition, A]


@dataclass(eq=False, slots=True)
class PartitionLookups(Generic[Q, A]):
    """Look-ups beside fetches, so that one silent leader delays no other partition.

    `is_current` returns whether the answer to a question is still of use. `on_answer` gets such an
    answer. A position without an answer is left alone for a while.
    """

    conversations: Conversations
    positions: Positions
    question: Question[Q, A]
    is_current: Callable[[Position, Q], bool]
    on_answer: Callable[[Position, Q, A], None]
    lookups: list[_Lookup[Q, A]] = field(default_factory=list)

    def ask(self, questions: Mapping[TopicPartition, Q]) -> None:
        """Ask about these partitions, except for those whose answer is still to come."""
        new = {where: question for where, question in questions.items() if not self.is_asked(where)}
        if new:
            answers: dict[TopicPartition, A] = {}
            running = self.conversations.begin(self.question(new, answers))
            asked = {where: (self.positions[where], question) for where, question in new.items()}
            self.lookups.append(_Lookup(running, asked, answers))

    def is_asked(self, where: TopicPartition) -> bool:
        """Return whether a useful answer for this partition is still to come."""
        return any(
            where in lookup.asked and self._is_needed(*lookup.asked[where])
            for lookup in self.lookups
        )

    def take(self) -> None:
        """Take the answers that have come, and then raise the first error."""
        errors: list[KafkaError] = []
        for lookup in list(self.lookups):
            try:
                self._take(lookup)
            except KafkaError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _take(self, lookup: _Lookup[Q, A]) -> None:
        for where in [where for where in lookup.asked if where in lookup.answers]:
            position, question = lookup.asked.pop(where)
            if self._is_needed(position, question):
                self.on_answer(position, question, lookup.answers[where])
        if lookup.running.is_done:
            self.lookups.remove(lookup)
            for position, question in lookup.asked.values():
                if self._is_needed(position, question):
                    position.next_try.failed()
            lookup.running.result()

    def _is_needed(self, position: Position, question: Q) -> bool:
        is_read = self.positions.get(position.topic_partition) is position
        return is_read and self.is_current(position, question)
