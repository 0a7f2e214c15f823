"""Queries that write to Kafka, with faults made on purpose, and the rows that readers see."""
