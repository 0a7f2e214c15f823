"""No option runs code. No option opens a file or an address that its value does not name."""

import json
import subprocess
import sys

import pytest

TIMEOUT_SECONDS = 1_200


@pytest.mark.long
@pytest.mark.parametrize(
    "values",
    ["few", pytest.param("all", marks=pytest.mark.reliability_full)],
)
def test_what_options_with_hostile_values_set_in_motion(values: str) -> None:
    command = [sys.executable, "-m", "tests.spark.hostile_options", values]
    ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=TIMEOUT_SECONDS, check=True)
    found = json.loads(ended.stdout)
    print({name: found[name] for name in ("options", "values", "tried", "slowest")})
    assert found["wrong"] == []
    assert found["tried"] > 500
    # The audit hook sees these events.
    assert "open" in found["seen"]
