"""A topic in pandas, as the cookbook reads it."""

import json

import pytest

from spark_kafka_source import read_topic
from tools.traffic import Events

pandas = pytest.importorskip("pandas", reason="`make test-matrix` has it")

pytestmark = pytest.mark.kafka


def test_a_topic_in_pandas(events: Events) -> None:
    events.create(1)
    orders = [{"id": 2**53 + 1, "user": "a"}, {"user": None}]
    events.write(map(json.dumps, orders))
    week = read_topic(
        events.name,
        columns=["offset", "value"],
        value_format="json",
        value_schema="id BIGINT, user STRING",
        bootstrap_servers=events.kafka.bootstrap_servers,
    )
    frame = week.flatten().to_pandas()
    assert list(frame.columns) == ["offset", "value.id", "value.user"]
    assert frame["value.id"].dtype == "float64"  # pandas has no whole numbers with nulls.
    exact = week.flatten().to_pandas(types_mapper=pandas.ArrowDtype)
    assert exact["value.id"].tolist()[0] == 2**53 + 1
