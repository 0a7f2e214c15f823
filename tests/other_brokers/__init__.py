"""Brokers of other makers."""
