"""Users' names of assignors: Kafka's names, and the names of Java's classes."""

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups.assignors import ASSIGNORS, assignors_named

JAVA = "org.apache.kafka.clients.consumer"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("range", ["range"]),
        (" cooperative-sticky ,range,", ["cooperative-sticky", "range"]),
        (f"{JAVA}.RangeAssignor,{JAVA}.CooperativeStickyAssignor", ["range", "cooperative-sticky"]),
        (f"{JAVA}.RoundRobinAssignor,{JAVA}.StickyAssignor", ["roundrobin", "sticky"]),
    ],
)
def test_they_come_in_the_order_of_their_names(text: str, names: list[str]) -> None:
    assert [type(each) for each in assignors_named(text)] == [ASSIGNORS[name] for name in names]


@pytest.mark.parametrize(
    ("text", "found"), [("", "none"), (" , ", "none"), ("range,Sticky", "'Sticky'")]
)
def test_one_that_there_is_not_is_named(text: str, found: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"partition\.assignment\.strategy.*{found}"):
        assignors_named(text)
