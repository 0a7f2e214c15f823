"""Faults that change no behaviour, by path, old line and new line, each with its reason."""

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "spark_kafka_source/groups/classic.py",
        'self._protocol_name = joined.protocol_name or ""',
        "self._protocol_name = (joined.protocol_name)",
    ): "it is the name of one of the assignors by then; only mypy does not know",
}
