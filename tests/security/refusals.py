"""Reasons why a client cannot log in, by confluent-kafka's errors."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

# "All brokers down" does not give the reason.
_SAYS_NOTHING = {KafkaError._ALL_BROKERS_DOWN}
_MOST_REPORTS = 20
_WAIT_SECONDS = 30


def refusal(bootstrap_servers: str, settings: Mapping[str, Any], said: str = "") -> KafkaError:
    """Return the first error with a reason that has this text, for a client with these settings.

    A broker that refuses a certificate closes the connection. The client may learn of this by its
    next write, which tells no reason. Then it tries again.
    """
    errors: list[KafkaError] = []
    own: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "error_cb": errors.append}
    client = AdminClient({**own, "log_level": 0, **settings})
    for _ in range(_MOST_REPORTS):
        for error in errors:
            if error.code() not in _SAYS_NOTHING and said in error.str():
                return error
        if not client.poll(_WAIT_SECONDS):
            break
    raise AssertionError(f"nothing was refused: {errors}")
