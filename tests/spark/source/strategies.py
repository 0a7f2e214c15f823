"""Random partitions and offsets in Kafka's bounds."""

from hypothesis import strategies as st

from spark_kafka_source.topic_partition import TopicPartition

TOPIC_PARTITIONS = st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1))
OFFSETS = st.dictionaries(TOPIC_PARTITIONS, st.integers(0, 2**63 - 1), max_size=8)
