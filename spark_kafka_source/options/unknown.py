"""Names and words that are not known: which known one is meant."""

from collections.abc import Iterable

from spark_kafka_source.secret import Secret

PREFIX = "kafka."
"""The prefix of options that are Kafka's own settings."""

_MOST_COMPARED = 100
_A_SLIP = 0.5
_A_LIKENESS = 0.75


def nearest(name: str, known: Iterable[str], cutoff: float = _A_LIKENESS) -> str | None:
    """Return the option that a misspelt name may mean, or None. `cutoff` is at most 1.

    It has the same words in another order, or is alike. The comparison leaves out the prefix
    `kafka.`: all of Kafka's options have it, and many users forget it.
    """
    by_text = {each.lower().removeprefix(PREFIX): each for each in known}
    text = name.lower().removeprefix(PREFIX)[:_MOST_COMPARED]
    words = sorted(text.split("."))
    for each, option in by_text.items():
        if len(each) == len(text) and sorted(each.split(".")) == words:
            return option
    close = _close_matches(text, by_text, cutoff)
    return by_text[close[0]] if close else None


def if_resembling(text: str, known: Iterable[str]) -> str | Secret:
    """Return the text if it resembles a known one, otherwise hide it.

    It may be a misplaced password.
    """
    lowered = text.lower()[:_MOST_COMPARED]
    return text if _close_matches(lowered, map(str.lower, known), _A_SLIP) else Secret(text)


def _close_matches(text: str, known: Iterable[str], cutoff: float) -> list[str]:
    # Only a misspelt option needs it, and most processes have none.
    from difflib import get_close_matches  # noqa: PLC0415

    return get_close_matches(text, list(known), n=1, cutoff=cutoff)
