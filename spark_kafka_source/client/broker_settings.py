"""Settings of brokers (KIP-133), for errors and defaults that depend on them."""

from spark_kafka_source.client.client import KafkaClient
from spark_kafka_source.client.cluster import Broker
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)

_BROKER = 4


def number_set_at(client: KafkaClient, broker: Broker, name: str, deadline: Deadline) -> int | None:
    """Return a broker's setting that is a whole number, or None if the broker does not tell it.

    That is so if the user lacks DESCRIBE_CONFIGS on the cluster. Raises what `KafkaClient.send`
    raises.
    """
    resource = DescribeConfigsResource(_BROKER, str(broker.node_id), [name])
    answer = client.send(DescribeConfigsRequest([resource], False, False), broker, deadline)
    values = [each.value for result in answer.results for each in result.configs]
    return next((int(each) for each in values if each and each.isdecimal()), None)
