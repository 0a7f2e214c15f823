"""All targets by name, with their functions and the changes to their inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.fuzz import (
    batches,
    checkpoints,
    conversations,
    decisions,
    frames,
    framing,
    json_values,
    logins,
    messages,
    options,
    registries,
    responses,
    stores,
    values,
)
from tools.fuzz.judge import Function
from tools.fuzz.mutations import Edit, edited, random_edits, records_edited

CORPUS = Path(__file__).with_name("corpus")

BEFORE_RECORDS = batches.OPTIONS_BYTES + batches.FACTS_BYTES
"""In an input of `rewritten` or `recompressed`."""


def _rewritten(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Change mostly one record, and correct the lengths around it. Sometimes change any byte."""
    if edits and edits[0].value % 4 == 0:
        return edited(data, edits)
    return data[:BEFORE_RECORDS] + records_edited(data[BEFORE_RECORDS:], edits)


@dataclass(frozen=True, slots=True)
class Target:
    """A function of bytes, the changer of its inputs, and their largest size."""

    name: str
    function: Function
    change: Callable[[bytes, Sequence[Edit]], bytes] = edited
    most_bytes: int = 4096
    made_seeds: Callable[[], list[bytes]] = list

    @property
    def knows_records(self) -> bool:
        """Whether the changes to inputs know records."""
        return self.change is not edited

    def changed(self, data: bytes, random: Random) -> bytes:
        """Return another input at random."""
        return self.change(data, random_edits(random))[: self.most_bytes]

    def tiny_seeds(self) -> list[bytes]:
        """Return the seeds that are small enough to change each byte in turn."""
        return [path.read_bytes() for path in sorted((CORPUS / self.name).glob("tiny*"))]

    def seeds(self) -> list[bytes]:
        """Return the inputs in the repository, and the inputs made at each run."""
        kept = sorted((CORPUS / self.name).glob("*"))
        return [*(path.read_bytes() for path in kept), *self.made_seeds()]


TARGETS = {
    target.name: target
    for target in (
        Target("responses", responses.responses),
        Target("frames", frames.frames),
        Target("handshakes", frames.handshakes),
        Target("batches", batches.batches),
        Target("rewritten", batches.rewritten, _rewritten),
        Target("recompressed", batches.recompressed),
        Target("conversations", conversations.conversations, most_bytes=256),
        Target("offsets", checkpoints.offsets, most_bytes=20_000),
        Target("logs", checkpoints.logs, most_bytes=20_000),
        Target(
            "decisions",
            decisions.decisions,
            most_bytes=20_000,
            made_seeds=decisions.decision_seeds,
        ),
        Target("options", options.options, most_bytes=20_000),
        Target("scram", logins.scram),
        Target("oauthbearer", logins.oauthbearer, most_bytes=20_000),
        Target("token_answers", logins.token_answers, most_bytes=20_000),
        Target("jaas", logins.jaas),
        Target("pem", stores.pem, made_seeds=stores.pem_seeds),
        Target("avro", values.avro, most_bytes=512, made_seeds=values.avro_seeds),
        Target("framing", framing.framing, most_bytes=512, made_seeds=framing.framing_seeds),
        Target(
            "registry_answers",
            registries.registry_answers,
            most_bytes=20_000,
            made_seeds=registries.registry_seeds,
        ),
        Target("json", json_values.json_, most_bytes=512, made_seeds=json_values.json_seeds),
        Target("protobuf", messages.protobuf, most_bytes=512, made_seeds=messages.protobuf_seeds),
        Target(
            "descriptors",
            messages.descriptors,
            most_bytes=20_000,
            made_seeds=messages.descriptor_seeds,
        ),
        Target("pkcs12", stores.pkcs12, made_seeds=stores.pkcs12_seeds),
    )
}
