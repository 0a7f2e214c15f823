"""Errors for groups, topics and transactions in a state that does not allow a request."""

from collections.abc import Sequence
from typing import TypeVar

from spark_kafka_source.errors import BrokerError, KafkaError, RemoteError, error_named, listed

T = TypeVar("T")

_MOST_SHOWN = 3


class GroupNotFoundError(RemoteError):
    """The group does not exist: it never did, it expired, or it was deleted."""

    def __init__(self, group_id: str, detail: str | None = None) -> None:
        super().__init__(group_id, detail)
        self.group_id, self.detail = group_id, detail

    def _text(self) -> str:
        text = f"There is no group {self.group_id!r}"
        return f"{text}: {self.detail}" if self.detail else text


class TransactionNotFoundError(RemoteError):
    """The brokers do not know the transactional id: it never existed, or it expired."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__(transactional_id)
        self.transactional_id = transactional_id

    def _text(self) -> str:
        return f"There is no transactional id {self.transactional_id!r}"


class TopicExistsError(BrokerError):
    """The topic exists already. `note` says more, if there is more to know."""

    def __init__(self, topic: str, note: str | None = None) -> None:
        super().__init__(error_named("TOPIC_ALREADY_EXISTS"), f"CreateTopics of topic {topic!r}")
        self.args, self.topic, self.note = (topic, note), topic, note

    def _text(self) -> str:
        text = f"Topic {self.topic!r} exists already: {self.error}"
        return f"{text}. {self.note}" if self.note else text


class GroupNotEmptyError(RemoteError):
    """The group has members. They would not notice the change, or would lose their group.

    `members` has the client id and host of each, as texts show them.
    """

    def __init__(self, group_id: str, what: str, state: str, members: Sequence[str] = ()) -> None:
        super().__init__(group_id, what, state, tuple(members))
        self.group_id, self.what, self.state, self.members = group_id, what, state, tuple(members)

    def _text(self) -> str:
        who = f" ({listed(self.members, _MOST_SHOWN)})" if self.members else ""
        return (
            f"Group {self.group_id!r} is {self.state or 'active'}: {self.what} only while it has "
            f"no members; stop its consumers first{who}"
        )


def unless_error(answer: T | KafkaError) -> T:
    """Return the answer. Raise the error that is in its place."""
    if isinstance(answer, KafkaError):
        raise answer
    return answer


def typed(error: BrokerError, group_id: str, wish: str) -> BrokerError | RemoteError:
    """Return the error of a group as one of the errors above, if one of them fits."""
    if error.error.name == "GROUP_ID_NOT_FOUND":
        return GroupNotFoundError(group_id, error.detail)
    if error.error.name in ("NON_EMPTY_GROUP", "UNKNOWN_MEMBER_ID"):
        return GroupNotEmptyError(group_id, wish, "")
    return error
