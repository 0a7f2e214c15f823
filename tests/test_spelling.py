"""Errors name settings in the spelling of the user's interface, from all places in the code."""

import pickle

import pytest

from spark_kafka_source.errors import BootstrapError, ConfigurationError, KafkaTimeoutError
from spark_kafka_source.spelling import as_written, daemon, spelt

ARGUMENTS = {"kafka.bootstrap.servers": "bootstrap_servers", "kafka.group.id": "group_id"}
COMMAND = {"kafka.bootstrap.servers": "-b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see 'kafka.group.id'.", "see 'group_id'."),
        ("'kafka.group.id' and 'kafka.bootstrap.servers'", "'group_id' and 'bootstrap_servers'"),
        # A topic may have this name. Only a quoted name is an option's name.
        ("topic 'kafka.events'", "topic 'kafka.events'"),
        ("https://kafka.group.id/", "https://kafka.group.id/"),
    ],
)
def test_only_names_of_settings_are_replaced(text: str, expected: str) -> None:
    assert as_written(text, ARGUMENTS) == expected
    assert as_written(text) == text


def test_an_error_keeps_the_names_of_where_it_was_made() -> None:
    with spelt(ARGUMENTS):
        error = BootstrapError(["a:1 (refused)"])
        told = KafkaTimeoutError(f"Metadata: {BootstrapError(['b:1'])}; see 'kafka.group.id'")
    assert str(error).startswith("No broker of 'bootstrap_servers' could be reached; tried a:1")
    assert str(told).startswith("Metadata: No broker of 'bootstrap_servers' could")
    assert str(told).endswith("see 'group_id'")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # our own bytes
    assert "'kafka.bootstrap.servers'" in str(BootstrapError([]))


def test_an_option_has_the_name_that_its_user_wrote() -> None:
    with spelt(ARGUMENTS):
        error = ConfigurationError("kafka.group.id", "is {}", "Or 'kafka.bootstrap.servers'", "x")
    assert (error.option, error.found) == ("group_id", "is 'x'")
    assert str(error) == "Option 'group_id': is 'x'. Or 'bootstrap_servers'"


def test_what_the_user_gave_is_shown_as_it_is() -> None:
    with spelt(ARGUMENTS):
        error = ConfigurationError("kafka.group.id", "found {}", "Give another", "kafka.other")
    assert "found 'kafka.other'" in str(error)


def test_the_outermost_front_is_what_the_user_sees() -> None:
    with spelt(COMMAND):
        with spelt(ARGUMENTS):
            inner = BootstrapError([])
        outer = BootstrapError([])
    assert "'-b'" in str(inner)
    assert "'-b'" in str(outer)
    with spelt(ARGUMENTS):
        assert "'bootstrap_servers'" in str(BootstrapError([]))


def test_a_thread_that_is_started_within_a_front_is_of_it() -> None:
    made = []
    with spelt(ARGUMENTS):
        thread = daemon(lambda: made.append(BootstrapError([])), "within")
    thread.start()
    thread.join()
    assert "'bootstrap_servers'" in str(made[0])


def test_an_error_derived_from_another_elsewhere_keeps_the_name() -> None:
    with spelt(ARGUMENTS):
        error = ConfigurationError("kafka.group.id", "found {}", "x", "y")
    assert error.without_values().option == "group_id"
