"""The fit finds planted growth, and only this."""

from pathlib import Path
from random import Random

from tools.soak import samples
from tools.soak.growth import growths
from tools.soak.samples import Sample

HOUR_SECONDS = 3600


def life(role: str, number: int, begin: int, end: int, mib_an_hour: float = 0.0) -> list[Sample]:
    """Return samples of a process that reaches 100 MiB within a minute, and then grows."""
    chance = Random(number)
    return [
        Sample(at, role, number, (
            min(100, at - begin + 40) + mib_an_hour * (at - begin) / HOUR_SECONDS
            + chance.uniform(-2, 2), 5, 8, 20,
        ))
        for at in range(begin, end, 5)
    ]  # fmt: skip


def test_a_steady_process_does_not_grow() -> None:
    (found,) = growths(life("driver", 1, 0, HOUR_SECONDS))
    assert found.grows == []
    assert found.is_long_enough
    assert abs(found.an_hour[0]) < 2
    assert found.middle[1:] == (5, 8, 20)


def test_a_leak_is_found() -> None:
    (found,) = growths(life("driver", 1, 0, HOUR_SECONDS, mib_an_hour=120))
    assert found.grows == ["MiB"]
    assert 115 < found.an_hour[0] < 125
    assert 55 < found.total[0] < 65


def test_sockets_that_are_left_are_found() -> None:
    steady = life("driver", 1, 0, HOUR_SECONDS)
    leaking = [
        Sample(each.seconds, each.role, each.life, (*each.values[:2], at // 30, each.values[3]))
        for at, each in enumerate(steady)
    ]
    (found,) = growths(leaking)
    assert found.grows == ["sockets"]


def test_a_process_that_is_started_again_does_not_grow() -> None:
    """Only the second half of its longest life counts."""
    lives = life("driver", 1, 0, 600) + life("driver", 2, 600, 3000) + life("driver", 3, 3000, 3600)
    (found,) = growths(lives)
    assert found.grows == []
    assert 1150 < found.seconds <= 1200


def test_a_short_life_says_nothing() -> None:
    (found,) = growths(life("driver", 1, 0, 300, mib_an_hour=3000))
    assert not found.is_long_enough
    assert found.grows == []


def test_samples_are_kept(tmp_path: Path) -> None:
    taken, path = life("driver", 1, 0, 60), tmp_path / "samples"
    samples.write(taken[:5], path)
    samples.write(taken[5:], path)
    assert samples.read(path) == taken
