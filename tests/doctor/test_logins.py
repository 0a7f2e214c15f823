"""Passwords that brokers refuse."""

import json

from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.admin.conftest import address
from tests.doctor.rows import Examine, of, wrong
from tests.net.test_authentication import PASSWORD, USER, plain


def test_a_wrong_password_is_not_shown(examined: Examine) -> None:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    with MemoryBroker() as broker:
        broker.cluster.mechanisms["PLAIN"] = plain
        good = examined(address(broker), sasl_username=USER, sasl_password=PASSWORD, **login)
        rows = examined(address(broker), sasl_username=USER, sasl_password="Cnry-pass", **login)
    assert of(good, "login")["found"] == "SASL_PLAINTEXT, PLAIN"
    found = wrong(rows)
    assert found["check"] == "login"
    assert found["option"].startswith("sasl.")
    assert "Cnry" not in json.dumps(rows)
    assert PASSWORD not in json.dumps(good)


def test_only_one_broker_gets_a_wrong_password(examined: Examine) -> None:
    """Several refusals could lock the account."""
    with MemoryBroker(3) as broker:
        broker.cluster.mechanisms["PLAIN"] = plain
        servers = ",".join(str(broker.address(node_id)) for node_id in range(3))
        login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
        rows = examined(servers, sasl_username=USER, sasl_password="wrong", **login)
        assert len(broker.requests(SaslAuthenticateRequest)) == 1
    assert wrong(rows)["check"] == "login"
    others = [each for each in rows if each["check"] == "login" and each["verdict"] == "unknown"]
    assert len(others) == 2
    assert all(each["found"].startswith("not checked: ") for each in others)
