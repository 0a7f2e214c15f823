"""Kafka's messages, one module for each family of APIs, as in Kafka's own definitions."""
