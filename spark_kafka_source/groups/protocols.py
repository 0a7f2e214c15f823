"""A new member, for one of the two group protocols."""

from collections.abc import Sequence
from functools import partial

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.groups.assignors import Assignor, assignors_named
from spark_kafka_source.groups.classic import ClassicMembership
from spark_kafka_source.groups.config import GroupConfig, GroupProtocol
from spark_kafka_source.groups.consumer import ConsumerMembership
from spark_kafka_source.groups.coordinator import Coordinator, OnRequest
from spark_kafka_source.groups.listener import RebalanceListener
from spark_kafka_source.groups.lookups import partitions_to_assign, topic_names
from spark_kafka_source.groups.membership import IsReady, Membership


def new_membership(
    client: KafkaClient,
    config: GroupConfig,
    listener: RebalanceListener,
    assignors: Sequence[Assignor] = (),
    *,
    is_ready: IsReady = lambda _: True,
    on_request: OnRequest = lambda *_: None,
) -> Membership:
    """Create a member for the protocol in `config`. `assignors` replace the configured ones.

    It owns `client`: no other code may use it from now on. `on_request` runs in the thread that
    talks to the coordinator. Raises `ConfigurationError` for an unknown assignor.
    """
    coordinator = Coordinator(client, config.group_id, on_request)
    if config.group_protocol is GroupProtocol.CONSUMER:
        names_of = partial(topic_names, client)
        return ConsumerMembership(config, listener, coordinator, names_of, is_ready=is_ready)
    return ClassicMembership(
        config,
        assignors or assignors_named(config.partition_assignment_strategy),
        listener,
        coordinator,
        partial(partitions_to_assign, client),
        is_ready=is_ready,
        metadata_max_age_ms=client.config.metadata_max_age_ms,
    )
