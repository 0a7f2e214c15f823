"""The samples as a picture."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from matplotlib import pyplot as plt

from tools.benchmarks.plots import save
from tools.soak.samples import METRICS, Sample, is_jvm, is_worker

_MOST_POINTS = 150


def draw(samples: Sequence[Sample], path: Path) -> None:
    """Draw a row for each metric, and a column for each kind of process."""
    kinds = {
        "drivers and clients, in Python": lambda role: not (is_jvm(role) or is_worker(role)),
        "Python workers": is_worker,
        "JVMs of the drivers": is_jvm,
    }
    _, axes = plt.subplots(
        len(METRICS), len(kinds), figsize=(12, 11), layout="constrained", sharex=True
    )
    roles = sorted({each.role for each in samples})
    for column, (title, is_of_kind) in enumerate(kinds.items()):
        axes[0, column].set_title(title)
        for role in filter(is_of_kind, roles):
            found = [each for each in samples if each.role == role]
            minutes = _thinned([each.seconds / 60 for each in found])
            for row in range(len(METRICS)):
                values = _thinned([each.values[row] for each in found])
                label = role.partition(":")[0]
                axes[row, column].plot(minutes, values, label=label, linewidth=1.2)
        for row, metric in enumerate(METRICS):
            axes[row, column].set_ylabel(metric)
            axes[row, column].set_ylim(bottom=0)
        axes[-1, column].set_xlabel("minutes")
        axes[-1, column].legend(loc="lower center", fontsize="small")
    save(path)


def _thinned(values: Sequence[float]) -> list[float]:
    """Return medians of a fixed number of parts."""
    step = max(1, -(-len(values) // _MOST_POINTS))
    return [median(values[at : at + step]) for at in range(0, len(values), step)]
