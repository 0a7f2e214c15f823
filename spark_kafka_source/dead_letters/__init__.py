"""The topic of dead letters: bad records of a consumer or a Spark task, on their way to it.

It stands above `producer`, and `consumer` and `spark` are its users. So a consumer can write
letters, and `consumer` and `producer` still do not know each other.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.dead_letters.topic import check_topic
    from spark_kafka_source.dead_letters.writing import (
        DeadLetterError,
        DeadLetters,
        Destination,
        SentLetters,
    )

__all__ = ["DeadLetterError", "DeadLetters", "Destination", "SentLetters", "check_topic"]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "topic": "check_topic",
            "writing": "DeadLetterError DeadLetters Destination SentLetters",
        },
    )
