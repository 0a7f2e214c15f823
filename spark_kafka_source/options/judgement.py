"""The judgement of given names that are no options of a client, for all fronts.

A front asks `judged`, and says the answer in its own words: an error, or a warning.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings, Use
from spark_kafka_source.options.unknown import nearest

# The reader of these options refuses unknown ones: a misspelt one could leave a door open.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")
_A_SLIP = 0.9


class Verdict(Enum):
    """What a name is that is no option of a client."""

    REFUSED = auto()
    WITHOUT_EFFECT = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a name. `text` is the reason, or what to do; "" if nothing is known.

    `near` is the option that an unknown name may mean. The client reads it.
    """

    name: str
    verdict: Verdict
    text: str = ""
    near: str | None = None

    @property
    def hint(self) -> str:
        """The question whether `near` was meant; "" without it."""
        return f"Did you mean '{self.near}'?" if self.near else ""


@dataclass(frozen=True, slots=True)
class OtherNames:
    """The names that are no options of a client, in lower case, and what is known of them.

    `reasons` has why a name has no effect, `refused` what to do instead of what it asks for, and
    `instead` the same for names that no Kafka client of ours has. `meant` has our option of the
    same meaning. A name with its value in `done` asks for nothing more than is done anyway.
    """

    reasons: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    meant: Mapping[str, str] = field(default_factory=dict)
    done: Mapping[str, str] = field(default_factory=dict)

    def judge(self, name: str, value: str, read: Collection[str]) -> Judgement | None:
        """Return the judgement of a name that is not `read`; None if there is nothing to say."""
        if self.done.get(name) == value.strip().lower():
            return None
        if name in self.refused:
            return Judgement(name, Verdict.REFUSED, self.refused[name])
        if name in self.reasons:
            return Judgement(name, Verdict.WITHOUT_EFFECT, self.reasons[name])
        if name.startswith(_SECURITY):
            return None
        return self._unknown(name, read)

    def _unknown(self, name: str, read: Collection[str]) -> Judgement:
        if name in self.instead:
            return Judgement(name, Verdict.UNKNOWN, self.instead[name])
        known = {**{each: each for each in self.reasons}, **{each.lower(): each for each in read}}
        near = self.meant.get(name) or nearest(name, known.values())
        if near is None or near in read:
            return Judgement(name, Verdict.UNKNOWN, near=near)
        text = f"'{near}' has no effect either: {self.reasons[near]}"
        return Judgement(name, Verdict.UNKNOWN, text)


def judged(
    settings: Settings, read: Collection[str], others: Callable[[], OtherNames]
) -> list[Judgement]:
    """Return the judgements of given names that are not `read`, refused ones first.

    `others` is called only if there is such a name.
    """
    names = settings.values.keys() - {name.lower() for name in read}
    if not names:
        return []
    other_names = others()
    judgements = (other_names.judge(name, settings.values[name], read) for name in sorted(names))
    return sorted(filter(None, judgements), key=lambda each: each.verdict is not Verdict.REFUSED)


def refuse_unknown(settings: Settings, prefix: str, read: Collection[str]) -> None:
    """Raise `ConfigurationError` for an unknown name with this prefix, unless it does no harm."""
    for name in sorted(settings.values):
        if not name.startswith(prefix) or name in read:
            continue
        from spark_kafka_source.options.other_names import other_names  # noqa: PLC0415

        known = other_names(Use.CONSUMER)
        if name not in known.reasons:
            meant = known.meant.get(name) or nearest(name, read, _A_SLIP)
            expected = f"Did you mean '{meant}'?" if meant else "See docs/options.md for all"
            expected = known.refused.get(name) or known.instead.get(name) or expected
            raise ConfigurationError(name, "is not supported", expected)
