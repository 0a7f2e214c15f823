"""Queries that write to Kafka, with faults made on purpose, and what readers see of it."""
