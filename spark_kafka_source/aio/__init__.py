"""Kafka's consumer and producer for asyncio."""

from spark_kafka_source.aio.aio_consumer import AIOConsumer
from spark_kafka_source.aio.aio_producer import AIOProducer

__all__ = ["AIOConsumer", "AIOProducer"]
