"""Assignors as users give them: what is taken, and what is refused when given."""

from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source import (
    Assignment,
    Assignor,
    KafkaConsumer,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.groups.assignors import Cluster, RangeAssignor
from spark_kafka_source.groups.assignors.custom import given_assignors
from spark_kafka_source.groups.leader import divide
from spark_kafka_source.groups.lookups import TopicsOf
from spark_kafka_source.net import run
from spark_kafka_source.protocol.messages.membership import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from spark_kafka_source.testing.memory import MemoryBroker
from tests.groups.assignors.topics import topics, wanting

IN_GROUP: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1", "group_id": "g"}


class Least(Assignor):
    """The least that is an assignor."""

    name = "least"

    def assign(self, cluster: Any, subscriptions: Any) -> Any:
        return {member: Assignment(()) for member in subscriptions}


class Configured(Least):
    name = "configured"

    def configure(self, configuration: Any) -> None:
        self.configuration = configuration


def test_a_subclass_has_defaults_for_all_but_two() -> None:
    least = Least()
    assert least.protocol is RebalanceProtocol.EAGER
    assert least.user_data(["t"]) is None
    least.on_assignment(Assignment(()), 1)
    with pytest.raises(TypeError, match="abstract"):
        type("Nothing", (Assignor,), {"name": "nothing"})()
    with pytest.raises(TypeError, match="abstract"):
        type("Nameless", (Assignor,), {"assign": Least.assign})()


def test_objects_and_names_are_taken_in_their_order() -> None:
    configured = Configured()
    found = given_assignors([configured, "sticky, roundrobin", RangeAssignor()], {"group_id": "g"})
    assert [each.name for each in found] == ["configured", "sticky", "roundrobin", "range"]
    assert configured.configuration == {"group_id": "g"}
    assert given_assignors(None, {}) == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["rangee"], "Option 'assignors': found 'rangee'. There are range, "),
        ([""], "Option 'assignors': found none. There are range, "),
        ([], r"Option 'assignors': is empty. Give a list of objects, .*, or leave it out"),
    ],
)
def test_an_unknown_name_and_an_empty_list_are_those_of_the_argument(
    given: list[Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        KafkaConsumer(assignors=given, **IN_GROUP)


def assignor_of(base: type = Least, **attributes: Any) -> Any:
    return type("Mine", (base,), attributes)()


DUCK = {
    "name": "duck",
    "protocol": RebalanceProtocol.EAGER,
    "user_data": lambda topics: None,
    "assign": lambda cluster, subscriptions: {},
    "on_assignment": lambda assignment, generation_id: None,
}
REFUSED: dict[str, tuple[Any, str]] = {
    "class": ([Least], "is the class 'Least'. Give an object of it"),
    "class of ours": ([RangeAssignor], "is the class 'RangeAssignor'"),
    "no list": (Least(), "is of type Least. Give a list of objects"),
    "a name": ("range", "is of type str. Give a list of objects"),
    "an unknown name": (["rang"], "found 'rang'"),
    "anything": ([5], "an object of type int, which has no `name`"),
    "without a method": (
        [SimpleNamespace(**{k: v for k, v in DUCK.items() if k != "user_data"})],
        "has no `user_data`. Make its class a subclass of `Assignor`",
    ),
    "slip": ([assignor_of(on_assigment=print)], "`on_assigment`, which is never called. Did you m"),
    "java": ([assignor_of(onAssignment=print)], "Did you mean `on_assignment`"),
    "javas protocols": ([assignor_of(supported_protocols=print)], "Did you mean `protocol`"),
    "slip of a value": ([assignor_of(protocols=1)], "Did you mean `protocol`"),
    "arguments": ([assignor_of(assign=lambda self, cluster: {})], "`assign` that cannot be called"),
    "twice": ([Least(), Least()], "has 'least' twice"),
    "twice by name": (["range", RangeAssignor()], "has 'range' twice"),
    "name": ([assignor_of(name=b"x")], "whose `name` is no text"),
    "no name": ([assignor_of(name="")], "whose `name` is no text"),
    "protocol": ([assignor_of(protocol="COOPERATIVE")], "whose `protocol` is no `RebalancePro"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_assignor_is_refused_when_given(case: str) -> None:
    given, said = REFUSED[case]
    with pytest.raises(ConfigurationError) as refused:
        KafkaConsumer(assignors=given, **IN_GROUP)
    assert said in str(refused.value)


def test_an_object_with_all_attributes_is_one() -> None:
    duck: Any = SimpleNamespace(**DUCK)
    assert given_assignors([duck], {}) == (duck,)


@pytest.mark.parametrize(
    ("given", "option", "said"),
    [
        ({"group_id": None}, "group_id", "an assignor divides the partitions of a group"),
        ({"group_protocol": "consumer"}, "group_protocol", "'group_remote_assignor' names"),
        ({"partition_assignment_strategy": "range"}, "partition_assignment_strategy", "Leave it"),
    ],
)
def test_where_no_assignor_is_asked_it_is_refused(
    given: dict[str, Any], option: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        KafkaConsumer(assignors=[Least()], **IN_GROUP | given)
    assert refused.value.option == option
    assert said in str(refused.value)
    with KafkaConsumer(assignors=[Least()], partition_assignment_strategy=None, **IN_GROUP):
        pass


def topics_of(**counts: int) -> TopicsOf:
    """Return a look-up that finds these topics, with so many partitions."""

    async def found(*_: object) -> Cluster:
        return topics(**counts)

    return found


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "'least' returned a NoneType: return a dict"),
        ({"m": ()}, "returned a tuple for member 'm': return an Assignment"),
        ({"other": Assignment(())}, "for 'other', which is no member's id"),
    ],
    ids=["nothing", "partitions", "stranger"],
)
def test_a_result_that_is_none_is_told_of(returned: Any, said: str) -> None:
    least = Least()
    least.assign = lambda *_: returned  # type: ignore[method-assign]
    members = [JoinGroupResponseMember("m", None, wanting("t").encode())]
    response = JoinGroupResponse(leader="m", member_id="m", members=members)
    with pytest.raises(LocalError, match=said):
        run(divide(response, least, topics_of(), is_cooperative=False))


T0, T1, T2 = (TopicPartition("t", each) for each in range(3))


def divided(shares: dict[str, tuple[Any, ...]], owned: tuple[TopicPartition, ...] = ()) -> None:
    """Have an assignor give these shares of `t`, of three partitions. Member `a` owns `owned`."""
    subscriptions = {"a": Subscription(("t",), owned=owned), "b": Subscription(("t",))}
    members = [
        JoinGroupResponseMember(each, None, found.encode()) for each, found in subscriptions.items()
    ]
    response = JoinGroupResponse(leader="a", member_id="a", members=members)
    least = Least()
    assigned = {member: Assignment(each) for member, each in shares.items()}
    least.assign = lambda *_: assigned  # type: ignore[method-assign]
    run(divide(response, least, topics_of(t=3), is_cooperative=bool(owned)))


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"a": (T0, TopicPartition("t", 3))}, "'least' gave partitions that do not exist: t-3;"),
        ({"a": (TopicPartition("u", 0),)}, "'least' gave partitions that do not exist: u-0;"),
        ({"a": ("t-0", T0)}, "'least' gave partitions that do not exist: t-0;"),
        ({"a": (T0, T1), "b": (T1, T2)}, "'least' gave partitions to more than one member: t-1;"),
    ],
    ids=["partition", "topic", "text", "twice"],
)
def test_partitions_that_are_not_there_or_given_twice_are_refused(
    shares: dict[str, tuple[Any, ...]], said: str
) -> None:
    with pytest.raises(LocalError, match=said):
        divided(shares)


def test_partitions_left_to_nobody_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    divided({"a": (T0, T2), "b": (T1,)})
    assert caplog.messages == []
    divided({"a": (T0,)})
    (said,) = caplog.messages
    assert "'least' gave 2 partitions of subscribed topics to no member" in said
    assert said.endswith(": t-1, t-2")


def test_a_partition_that_is_to_move_is_left_to_nobody_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    divided({"a": (T0,), "b": (T2,)}, owned=(T0, T1))
    assert caplog.messages == []


def test_user_data_that_is_no_bytes_is_refused_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    least = Least()
    least.user_data = lambda _: "heavy"  # type: ignore[method-assign, assignment, return-value]
    with MemoryBroker() as broker:
        broker.create_topic("t")
        servers = {**IN_GROUP, "bootstrap_servers": str(broker.address())}
        with KafkaConsumer(assignors=[least], **servers) as consumer:
            consumer.subscribe(["t"])
            with pytest.raises(LocalError, match="'least' has user data of type str: give"):
                consumer.poll(60_000)
    assert not any(each.exc_info for each in caplog.records)
