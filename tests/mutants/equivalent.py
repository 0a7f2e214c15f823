"""Faults that are none, by path, line before and line after, each with its reason."""

EQUIVALENT: dict[tuple[str, str, str], str] = {}
