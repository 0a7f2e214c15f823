"""Conversations, driven alone, beside other work, and several within one."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from spark_kafka_source.errors import ClosedError, KafkaError, LocalError
from spark_kafka_source.net import (
    Conversation,
    Conversations,
    Deadline,
    Running,
    Wait,
    Wakeup,
    conversation,
    keep_asking,
    pause,
    run,
    together,
    wait_for,
)
from spark_kafka_source.net.conversation import _MOST_AT_ONCE, InterruptedConversationError
from tests.client.clock import Clock, deadlines_by

# Later than the end of any run of the tests, which begins with the import of this file.
IN_TIME = Deadline(time.monotonic() + 1_000_000, 1_000_000_000)
LATER = Deadline(IN_TIME.at_seconds + 1, 1_000_001_000)
FAULT = LocalError("a fault")


class Answer:
    """What a conversation waits for, until the test calls `come`."""

    def __init__(self, name: str = "answer", until: Deadline = IN_TIME) -> None:
        self.name, self.until = name, until
        self.log: list[str] = []
        self._is_here = False
        self._wakeup = Wakeup()

    def come(self) -> None:
        self._is_here = True
        self._wakeup.wake()

    def fileno(self) -> int:
        return self._wakeup.fileno()

    async def heard(self, error: BaseException | None = None) -> str:
        """Wait, and return the name or raise the error. The log tells all steps."""
        self.log.append("begins")
        try:
            while not self._is_here:
                await wait_for([self], self.until)
            if error is not None:
                raise error
            return self.name
        finally:
            self.log.append("ends")


def answers(count: int) -> list[Answer]:
    return [Answer(str(each)) for each in range(count)]


async def at_once(value: str) -> str:
    return value


def never(wait: Wait) -> None:
    raise AssertionError(f"nothing is waited for, but: {wait}")


# -- one, in the calling thread --------------------------------------------------------------------


def test_one_without_a_wait_does_not_block() -> None:
    assert run(at_once("a"), never) == "a"


def test_each_wait_blocks_also_in_inner_conversations() -> None:
    first, second = answers(2)
    waits: list[Wait] = []

    def block(wait: Wait) -> None:
        waits.append(wait)
        if len(waits) > 1:  # The first wait ends too soon.
            (first if wait.sockets == [first] else second).come()

    async def both() -> str:
        return await first.heard() + await second.heard()

    assert run(both(), block) == "01"
    assert waits == [([first], IN_TIME)] * 2 + [([second], IN_TIME)]


def test_a_wait_ends_once_another_thread_has_the_answer() -> None:
    answer = Answer()
    answer.come()
    assert run(answer.heard()) == "answer"


def test_its_error_is_raised_as_it_is() -> None:
    answer = Answer()
    answer.come()
    with pytest.raises(LocalError) as raised:
        run(answer.heard(FAULT))
    assert raised.value is FAULT


def interrupted(wait: Wait) -> None:
    raise KeyboardInterrupt


def test_a_ctrl_c_is_raised_within_and_ends_it() -> None:
    answer = Answer()
    with pytest.raises(KeyboardInterrupt):
        run(answer.heard(), interrupted)
    assert answer.log == ["begins", "ends"]


def test_one_that_handles_the_error_of_a_wait_goes_on() -> None:
    answer = Answer()
    waits: list[Wait] = []

    def block(wait: Wait) -> None:
        waits.append(wait)
        if len(waits) == 1:
            raise FAULT
        answer.come()

    async def stubborn() -> str:
        try:
            return await answer.heard()
        except LocalError:
            return await answer.heard()

    assert run(stubborn(), block) == "answer"
    assert len(waits) == 2


def test_one_can_be_run_while_another_runs() -> None:
    async def outer() -> str:
        return run(at_once("inner"), never)

    assert run(outer(), never) == "inner"


def test_a_pause_ends_no_sooner_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines_by(clock := Clock(), monkeypatch)
    monkeypatch.setattr(conversation, "time", SimpleNamespace(sleep=clock.sleep))
    shares = iter([0.5, 0.25])

    def block(wait: Wait) -> None:
        """End the first two waits too soon."""
        clock.now_seconds += next(shares, 0.0)
        if clock.now_seconds >= 0.75:
            wait.block()

    run(pause(2.0), block)
    assert clock.now_seconds == 2.0
    assert clock.pauses == [1.25]
    run(pause(0.0), never)


def test_alone_a_thing_waits_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blocking(Answer):
        def wait(self, deadline: Deadline) -> None:
            self.log.append(f"waits for {deadline.timeout_ms} ms")

    alone, other = Blocking(), Answer()
    Wait([alone], IN_TIME).block()
    assert alone.log == ["waits for 1000000000 ms"]
    other.come()
    Wait([alone, other], IN_TIME).block()
    assert len(alone.log) == 1


# -- beside other work -----------------------------------------------------------------------------


def begun(among: Conversations, *those: Answer) -> list[Running[str]]:
    return [among.begin(each.heard()) for each in those]


def done(running: list[Running[str]]) -> list[int]:
    return [number for number, each in enumerate(running) if each.is_done]


def settled(conversations: Conversations) -> Wait:
    """Return the next wait after the one that ends at once, since there were news."""
    conversations.next_wait()
    return conversations.next_wait()


def test_one_that_waits_for_nothing_is_done_as_it_begins() -> None:
    conversations = Conversations()
    running = conversations.begin(at_once("a"))
    assert (running.is_done, running.result()) == (True, "a")
    assert conversations.is_idle
    wait = settled(conversations)
    assert (list(wait.sockets), wait.until.at_seconds) == ([], float("inf"))


def test_each_goes_on_once_its_own_wait_is_over() -> None:
    conversations, asked = Conversations(), answers(3)
    running = begun(conversations, *asked)
    conversations.step()
    assert done(running) == []
    with pytest.raises(ClosedError, match="not over yet"):
        running[1].result()
    asked[1].come()
    assert done(running) == [], "only a step goes on"
    settled(conversations).block()
    conversations.step()
    assert done(running) == [1]
    assert running[1].result() == "1"
    for each in asked:
        each.come()
    conversations.step()
    assert [each.result() for each in running] == ["0", "1", "2"]
    assert conversations.is_idle


def test_all_are_waited_for_until_the_first_of_their_moments() -> None:
    conversations = Conversations()
    asked = [Answer(until=LATER), Answer(until=IN_TIME), Answer(until=LATER)]
    running = begun(conversations, *asked)
    assert settled(conversations) == (asked, IN_TIME)
    running[1].give_up()
    assert settled(conversations) == ([asked[0], asked[2]], LATER)
    conversations.close()


def test_at_most_eight_are_under_way() -> None:
    conversations, asked = Conversations(), answers(11)
    running = begun(conversations, *asked)
    assert _MOST_AT_ONCE == 8

    def under_way() -> list[int]:
        return [number for number, each in enumerate(asked) if each.log == ["begins"]]

    assert under_way() == list(range(8))
    asked[3].come()
    asked[8].come()
    conversations.step()
    assert done(running) == [3, 8]
    assert under_way() == [0, 1, 2, 4, 5, 6, 7, 9]
    running[0].give_up()
    conversations.step()
    assert under_way() == [1, 2, 4, 5, 6, 7, 9, 10]
    conversations.close()


def test_one_given_up_before_its_turn_never_begins() -> None:
    conversations, asked = Conversations(), answers(10)
    running = begun(conversations, *asked)
    running[8].give_up()
    asked[0].come()
    conversations.step()
    assert (asked[8].log, asked[9].log) == ([], ["begins"])
    conversations.close()


def test_close_ends_present_and_later_conversations() -> None:
    conversations, asked = Conversations(), answers(10)
    running = begun(conversations, *asked)
    asked[0].come()
    conversations.step()
    conversations.close()
    assert running[0].result() == "0"
    assert [each.log for each in asked] == [["begins", "ends"]] * 9 + [[]]
    for each in running[1:]:
        with pytest.raises(ClosedError, match="given up"):
            each.result()
    assert conversations.is_idle


def test_an_error_is_the_result_of_its_own_conversation_only() -> None:
    conversations, (one, other) = Conversations(), answers(2)
    failing = conversations.begin(one.heard(FAULT))
    going_on = conversations.begin(other.heard())
    one.come()
    other.come()
    conversations.step()
    assert failing.error() is FAULT
    with pytest.raises(LocalError) as raised:
        failing.result()
    assert raised.value is FAULT
    assert going_on.error() is None
    assert going_on.result() == "1"


def test_a_fault_of_the_code_is_no_error_of_kafka() -> None:
    running = Conversations().begin(Answer().heard())
    running.give_up()
    assert isinstance(running.error(), ClosedError)
    answer = Answer()
    answer.come()
    with pytest.raises(ZeroDivisionError):
        Conversations().begin(answer.heard(ZeroDivisionError())).error()


def test_what_is_done_cannot_be_given_up() -> None:
    running = Conversations().begin(at_once("a"))
    running.give_up()
    assert running.result() == "a"


def test_a_ctrl_c_ends_the_one_that_it_meets() -> None:
    conversations, (one, other) = Conversations(), answers(2)
    met = conversations.begin(one.heard(KeyboardInterrupt()))
    going_on = conversations.begin(other.heard())
    one.come()
    other.come()
    with pytest.raises(KeyboardInterrupt):
        conversations.step()
    conversations.step()
    assert going_on.result() == "1"
    error = met.error()
    assert isinstance(error, InterruptedConversationError)
    assert error.has_remedy, "whoever needs the result asks again"
    assert conversations.is_idle


def test_one_may_begin_others() -> None:
    conversations, (outer, inner) = Conversations(), answers(2)
    begun_within: list[Running[str]] = []

    async def begins_another() -> str:
        found = await outer.heard()
        begun_within.append(conversations.begin(inner.heard()))
        return found

    running = conversations.begin(begins_another())
    outer.come()
    conversations.step()
    assert running.is_done
    inner.come()
    conversations.step()
    assert begun_within[0].result() == "1"


# -- several within one ----------------------------------------------------------------------------


def held(
    conversations: list[Conversation[str]],
    block: Callable[[Wait], None] = never,
    at_once: int | None = None,
) -> list[str | KafkaError]:
    """Return each one's result or error."""
    running = run(together(conversations, at_once=at_once), block)
    return [each.error() or each.result() for each in running]


def test_results_are_in_the_order_of_the_conversations() -> None:
    asked = answers(3)
    waits: list[list[object]] = []

    def last_first(wait: Wait) -> None:
        waits.append(list(wait.sockets))
        asked[3 - len(waits)].come()

    assert held([each.heard() for each in asked], last_first) == ["0", "1", "2"]
    assert waits == [asked, asked[:2], asked[:1]]


def test_none_together() -> None:
    assert held([]) == []


def test_an_error_of_one_leaves_the_others() -> None:
    one, other = answers(2)
    one.come()
    other.come()
    assert held([one.heard(FAULT), other.heard(), at_once("c")]) == [FAULT, "1", "c"]


def test_so_many_at_once_and_the_next_as_soon_as_one_is_done() -> None:
    asked = answers(5)
    seen: list[list[object]] = []

    def block(wait: Wait) -> None:
        seen.append(list(wait.sockets))
        last = wait.sockets[-1]
        assert isinstance(last, Answer)
        last.come()

    assert held([each.heard() for each in asked], block, 2) == ["0", "1", "2", "3", "4"]
    pairs = [[asked[0], each] for each in asked[1:]]
    assert seen == [*pairs, [asked[0]]]


class OnOneSocket(Answer):
    """One of several answers that come over one socket. Each reader reads for all."""

    def __init__(self, name: str, looks: list[str]) -> None:
        super().__init__(name)
        self.looks = looks
        self.is_dry = False

    def is_dry_since(self, since_seconds: float) -> bool:
        return self.is_dry

    async def heard(self, error: BaseException | None = None) -> str:
        while True:
            self.looks.append(self.name)
            if self._is_here:
                return self.name
            await wait_for([self], self.until)


def test_a_socket_that_others_have_read_is_not_read_again() -> None:
    looks: list[str] = []
    first, second = (OnOneSocket(name, looks) for name in ("first", "second"))
    waits: list[Wait] = []

    def block(wait: Wait) -> None:
        waits.append(wait)
        second.is_dry = len(waits) < 3
        if len(waits) == 3:
            second.come()
            first.come()

    running = run(together([first.heard(), second.heard()]), block)
    assert [each.result() for each in running] == ["first", "second"]
    assert looks == ["first", "second", "first", "first", "first", "second"]


def test_one_whose_moment_has_come_goes_on_though_there_is_nothing_to_read() -> None:
    looks: list[str] = []
    late = OnOneSocket("late", looks)
    late.is_dry, late.until = True, Deadline(0.0, 0)

    def block(wait: Wait) -> None:
        late.come()

    (running,) = run(together([late.heard()]), block)
    assert running.result() == "late"


def test_a_ctrl_c_ends_all_of_them() -> None:
    asked = answers(3)
    with pytest.raises(KeyboardInterrupt):
        held([each.heard() for each in asked], interrupted, 2)
    assert [each.log for each in asked] == [["begins", "ends"]] * 2 + [[]]


def test_several_within_several() -> None:
    asked = answers(4)

    async def pair(one: Answer, other: Answer) -> str:
        return "".join(each.result() for each in await together([one.heard(), other.heard()]))

    def block(wait: Wait) -> None:
        assert isinstance(wait.sockets, list)
        wait.sockets[0].come()

    assert held([pair(*asked[:2]), pair(*asked[2:])], block) == ["01", "23"]


def test_inner_conversations_end_with_the_one_that_is_given_up() -> None:
    conversations, asked = Conversations(), answers(2)

    running = conversations.begin(together(each.heard() for each in asked))
    assert settled(conversations) == (asked, IN_TIME)
    running.give_up()
    assert [each.log for each in asked] == [["begins", "ends"]] * 2
    conversations.close()


def test_one_who_keeps_asking_waits_for_questions_and_pauses_after_useless_answers() -> None:
    questions: list[bool] = []
    tries: list[int] = []

    async def answer(is_of_use: bool) -> bool:
        return is_of_use

    def pause_seconds(count: int) -> float:
        tries.append(count)
        return 3_600.0

    def step() -> bool:
        """Step, and return whether the thread may have a use for the outcome at once."""
        conversations.next_wait()
        conversations.step()
        return conversations.next_wait().until.expired

    conversations = Conversations()
    conversations.begin(
        keep_asking(lambda: answer(questions.pop()) if questions else None, pause_seconds)
    )
    assert not step()
    questions.append(True)
    assert step(), "an answer is news, also if it needed no wait"
    assert not step()
    assert not tries
    questions.append(False)
    assert step()
    assert not step()
    questions.append(False)
    assert not step(), "it pauses"
    assert (tries, questions) == ([1], [False])
    conversations.close()
