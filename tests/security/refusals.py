"""Reasons why a client cannot log in, by confluent-kafka's errors."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

# "All brokers down" does not give the reason.
_SAYS_NOTHING = {KafkaError._ALL_BROKERS_DOWN}
_MOST_REPORTS = 20
_WAIT_SECONDS = 10


def refusal(bootstrap_servers: str, settings: Mapping[str, Any]) -> KafkaError:
    """Return the first error with a reason, for a client with these settings."""
    errors: list[KafkaError] = []
    own: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "error_cb": errors.append}
    client = AdminClient({**own, "log_level": 0, **settings})
    for _ in range(_MOST_REPORTS):
        for error in errors:
            if error.code() not in _SAYS_NOTHING:
                return error
        if not client.poll(_WAIT_SECONDS):
            break
    raise AssertionError(f"nothing was refused: {errors}")
