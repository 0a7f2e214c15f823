"""What the nemesis harms, and from when on it spares the processes."""

from random import Random
from typing import cast
from unittest.mock import MagicMock

import pytest

from tools.reliability.writing.cluster import Cluster
from tools.soak.cast import Cast, Diary
from tools.soak.nemesis import Nemesis


def test_in_the_end_it_harms_only_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.soak.nemesis.time.sleep", lambda _: None)
    monkeypatch.setattr("tools.soak.nemesis.make_whole", lambda *_: None)
    cluster, cast_ = MagicMock(cuts=0), MagicMock()
    cluster.move_leaders.return_value = 1
    nemesis = Nemesis(cast(Cluster, cluster), cast(Cast, cast_), Diary(), Random(1))
    for _ in range(3):
        nemesis.strike()
    nemesis.spare_processes()
    cast_.reset_mock()
    cluster.reset_mock()
    for _ in range(20):
        nemesis.strike()
    assert cast_.mock_calls == []
    assert cluster.move_leaders.call_count >= 4
