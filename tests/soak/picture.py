"""The samples as a picture."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from statistics import median

from matplotlib import pyplot as plt

from tests.benchmarks.plots import save
from tests.soak.samples import METRICS, Sample, is_jvm

_MOST_POINTS = 150


def draw(samples: Sequence[Sample], path: Path) -> None:
    """Draw a curve of each metric for each role. The memory of JVMs has a separate panel."""
    figure, axes = plt.subplots(
        len(METRICS) + 1, 1, figsize=(11, 15), layout="constrained", sharex=True
    )
    roles = sorted({each.role for each in samples})
    colours = plt.get_cmap("tab20").colors  # type: ignore[attr-defined]  # a list of colours has it
    for role, colour in zip(roles, cycle(colours), strict=False):
        found = [each for each in samples if each.role == role]
        minutes = _thinned([each.seconds / 60 for each in found])
        for at, metric in enumerate(METRICS):
            values = _thinned([each.values[at] for each in found])
            of_a_jvm = metric == "MiB" and is_jvm(role)
            panel = axes[len(METRICS) if of_a_jvm else at]
            panel.plot(minutes, values, label=role, color=colour, linewidth=1)
    for at, metric in enumerate((*METRICS, "MiB of JVMs")):
        axes[at].set_ylabel(metric)
        axes[at].set_ylim(bottom=0)
    axes[-1].set_xlabel("minutes")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize="small")
    save(path)


def _thinned(values: Sequence[float]) -> list[float]:
    """Return medians of a fixed number of parts."""
    step = max(1, -(-len(values) // _MOST_POINTS))
    return [median(values[at : at + step]) for at in range(0, len(values), step)]
