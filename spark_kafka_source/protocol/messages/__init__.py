"""Kafka's messages, one module for each family of APIs, as declared in Kafka's own definitions."""
