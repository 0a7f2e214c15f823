"""Checks of a client's way to a cluster: each finding has a verdict, and the option to look at."""

from spark_kafka_source.doctor.examination import Scope, examine
from spark_kafka_source.doctor.finding import Finding, Verdict

__all__ = ["Finding", "Scope", "Verdict", "examine"]
