"""Plots of the curves. `bars` draws the scans."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt  # after the choice of a backend without a screen

from tools.benchmarks.interleaved import Ratio, Seconds, medians
from tools.benchmarks.sources import CEILING, FAST, PEER, PLAIN

LABELS = {PEER: "Spark's own connector", PLAIN: "plain", FAST: "fast", CEILING: "ready-made"}
COLOURS = {PEER: "#d08770", PLAIN: "#8fb8de", FAST: "#2f6fab", CEILING: "#bbbbbb"}
HEAD = ("what grows", "to", "peer ns a row", "plain", "fast", "ready", "plain x", "fast x")


@dataclass(frozen=True, slots=True)
class Point:
    """Point of a curve: the growing quantity, and each way's seconds for `rows` rows."""

    at: int
    rows: int
    seconds: Seconds

    def nanoseconds(self, way: str) -> float:
        """Return the time of a scan per row."""
        return medians(self.seconds)[way] / self.rows * 1e9

    def cells(self, name: str) -> list[str]:
        """Return a row of the table, under `HEAD`."""
        return [
            name,
            f"{self.at:,}",
            *(f"{self.nanoseconds(way):,.0f}" for way in LABELS),
            *(str(Ratio.of(self.seconds, PEER, way)) for way in (PLAIN, FAST)),
        ]


def curves(found: Mapping[str, Sequence[Point]], path: Path) -> None:
    """Plot the cost of a row, one picture for each growing quantity."""
    _, all_axes = plt.subplots(
        math.ceil(len(found) / 2), 2, figsize=(9, 7), layout="constrained", squeeze=False
    )
    for axes, (name, points) in zip(all_axes.flat, found.items(), strict=False):
        for way, label in LABELS.items():
            axes.plot(
                [point.at for point in points],
                [point.nanoseconds(way) for point in points],
                marker="o",
                label=label,
                color=COLOURS[way],
            )
        axes.set_xscale("log")
        axes.set_xticks([point.at for point in points], [f"{point.at:,}" for point in points])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel(name)
    for axes in all_axes[:, 0]:
        axes.set_ylabel("nanoseconds a row")
    all_axes[0, 0].legend()
    save(path)


def save(path: Path) -> None:
    """Write the picture, and begin another one."""
    # Without a date, equal figures give equal files.
    plt.savefig(path, metadata={"Date": None})
    plt.close()
