"""Settings of brokers and topics (KIP-133), for texts and defaults that depend on them."""

import logging
from collections.abc import Sequence

from spark_kafka_source.client.client import KafkaClient
from spark_kafka_source.client.cluster import Broker
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)

logger = logging.getLogger(__name__)

_TOPIC, _BROKER = 2, 4
_TIMESTAMP_TYPE, _BY_BROKER = "message.timestamp.type", "LogAppendTime"


def number_set_at(client: KafkaClient, broker: Broker, name: str, deadline: Deadline) -> int | None:
    """Return a broker's setting that is a whole number, or None if the broker does not tell it.

    That is so if the user lacks DESCRIBE_CONFIGS on the cluster. Raises what `KafkaClient.send`
    raises.
    """
    resource = DescribeConfigsResource(_BROKER, str(broker.node_id), [name])
    answer = client.send(DescribeConfigsRequest([resource], False, False), broker, deadline)
    values = [each.value for result in answer.results for each in result.configs]
    return next((int(each) for each in values if each and each.isdecimal()), None)


def log_append_topics(client: KafkaClient, names: Sequence[str]) -> set[str]:
    """Return those of the topics whose brokers set the times of records (LogAppendTime).

    A topic of which the user may not ask this is not among them: CreateTime is the default. It
    needs DESCRIBE_CONFIGS on the topic.
    """
    resources = [DescribeConfigsResource(_TOPIC, name, [_TIMESTAMP_TYPE]) for name in names]
    request = DescribeConfigsRequest(resources, False, False)
    try:
        answer = client.retrying(
            "DescribeConfigs", lambda deadline: client.send_to_any(request, deadline)
        )
    except KafkaError as error:
        logger.debug("The topics' %s is not known: %s", _TIMESTAMP_TYPE, error)
        return set()
    return {
        result.resource_name
        for result in answer.results
        for each in result.configs
        if (each.name, each.value) == (_TIMESTAMP_TYPE, _BY_BROKER)
    }
