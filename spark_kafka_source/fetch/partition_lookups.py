"""Look-ups of one kind for positions; each answer is taken as soon as it comes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.positions import Position, Positions
from spark_kafka_source.net import Conversation, Conversations, Running
from spark_kafka_source.topic_partition import TopicPartition

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(slots=True)
class _Open(Generic[Q, A]):
    """One look-up for several positions. It fills `found`."""

    lookup: Running[None]
    asked: dict[TopicPartition, tuple[Position, Q]]
    found: dict[TopicPartition, A]


Question: TypeAlias = Callable[
    [Mapping[TopicPartition, Q], dict[TopicPartition, A]], Conversation[None]
]
"""A conversation about some partitions, which puts each answer into the second argument."""


class PartitionLookups(Generic[Q, A]):
    """Look-ups beside fetches, so that one silent leader delays no other partition.

    `is_current` returns whether the answer to a question is still of use. `on_answer` gets such an
    answer, and `on_none` gets a position without an answer.
    """

    def __init__(
        self,
        conversations: Conversations,
        positions: Positions,
        question: Question[Q, A],
        *,
        is_current: Callable[[Position, Q], bool],
        on_answer: Callable[[Position, Q, A], None],
        on_none: Callable[[Position], None],
    ) -> None:
        self._conversations = conversations
        self._positions = positions
        self._question = question
        self._is_current = is_current
        self._on_answer = on_answer
        self._on_none = on_none
        self._open: list[_Open[Q, A]] = []

    def ask(self, questions: Mapping[TopicPartition, Q]) -> None:
        """Ask about these partitions, except for those whose answer is still to come."""
        asked = {
            where: (self._positions[where], question)
            for where, question in questions.items()
            if not self.is_asked(where)
        }
        if not asked:
            return
        found: dict[TopicPartition, A] = {}
        new = {where: question for where, (_, question) in asked.items()}
        lookup = self._conversations.begin(self._question(new, found))
        self._open.append(_Open(lookup, asked, found))

    def is_asked(self, where: TopicPartition) -> bool:
        """Return whether a useful answer for this partition is still to come."""
        position = self._positions[where]
        asked = (each.asked[where] for each in self._open if where in each.asked)
        return any(of is position and self._is_current(of, question) for of, question in asked)

    def take(self) -> None:
        """Take the answers that have come, and then raise the first error."""
        first_error: KafkaError | None = None
        for each in list(self._open):
            steps = (self._take_found, self._take_end)
            for step in steps if each.lookup.is_done else steps[:1]:
                try:
                    step(each)
                except KafkaError as error:
                    first_error = first_error or error
        if first_error is not None:
            raise first_error

    def _take_found(self, each: _Open[Q, A]) -> None:
        for where in [where for where in each.asked if where in each.found]:
            position, question = each.asked.pop(where)
            if self._is_of_use(where, position, question):
                self._on_answer(position, question, each.found[where])

    def _take_end(self, each: _Open[Q, A]) -> None:
        self._open.remove(each)
        for where, (position, question) in each.asked.items():
            if self._is_of_use(where, position, question):
                self._on_none(position)
        each.lookup.result()

    def _is_of_use(self, where: TopicPartition, position: Position, question: Q) -> bool:
        return self._positions.get(where) is position and self._is_current(position, question)
