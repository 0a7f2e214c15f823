"""Fixtures for the tests of `spark_kafka_source.testing`."""

from tests.testing.fake_java import fake_java

__all__ = ["fake_java"]
