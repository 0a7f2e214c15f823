"""Fixtures of the tests of `spark_kafka_source.testing` alone."""

from tests.testing.fake_java import fake_java

__all__ = ["fake_java"]
