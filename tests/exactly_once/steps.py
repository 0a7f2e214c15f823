"""The steps of a commit on brokers, for tests that end it there or act there."""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.requests import (
    ConfirmDecisions,
    EndTxn,
    FetchTopicIds,
    InitProducerId,
    RecordDecision,
    Request,
)
from spark_kafka_source.exactly_once.step_runner import StepRunner
from spark_kafka_source.producer import Generation


class Step(Enum):
    """A step that a driver has made."""

    FENCED = auto()
    READ = auto()
    CHECKED = auto()
    RECORDED = auto()
    DECIDED = auto()
    ONE_ENDED = auto()
    ENDED = auto()
    SWEPT = auto()


class SteppedRunner(StepRunner):
    """Run steps, and call `reached` after each step of a commit. Ends go out one by one."""

    def __init__(
        self,
        client: KafkaClient,
        names: Names,
        generation: Generation,
        reached: Callable[[Step], object],
    ) -> None:
        super().__init__(client, names, generation)
        self._control_id, self._reached = names.control_id, reached
        self._is_decided = False

    async def answers(self, requests: Sequence[Request]) -> Sequence[Any]:
        """Send requests, and tell which step that was."""
        if not _are_ends(requests, self._control_id):
            answers = await super().answers(requests)
            for each in requests:
                self._has_asked(each)
            return answers
        ended: list[Any] = []
        for each in requests:
            ended += await super().answers([each])
            if not isinstance(ended[-1], Exception):
                self._reached(Step.ONE_ENDED)
        self._reached(Step.ENDED)
        return ended

    def _has_asked(self, request: Request) -> None:
        match request:
            case InitProducerId(self._control_id):
                self._reached(Step.FENCED)
            case ConfirmDecisions():
                self._reached(Step.READ)
            case FetchTopicIds():
                self._reached(Step.CHECKED)
            case RecordDecision(_, decision) if decision.winners:
                self._reached(Step.RECORDED)
            case EndTxn(self._control_id, _, True):
                self._reached(Step.DECIDED)


def _are_ends(requests: Sequence[Request], control_id: str) -> bool:
    return all(
        isinstance(each, EndTxn) and each.commit and each.transactional_id != control_id
        for each in requests
    )
