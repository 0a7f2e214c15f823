"""The table of `make parity` says what is the same, what is not and why, and what fails."""

from tests.parity.differences import Difference
from tests.parity.table import Outcome, render

DIFFERENCES = {
    "life/deleted": Difference("better", "says which"),
    "life/grown[x]": Difference("different", "an older format"),
}


def test_a_row_for_each_scenario_and_counts_by_suite() -> None:
    outcomes = [
        Outcome("life/deleted[1]", "kafka", passed=True),
        Outcome("life/deleted[1]", "pykafka", passed=True),
        Outcome("life/grown[x]", "pykafka", passed=True),
        Outcome("life/grown[y]", "pykafka", passed=True),
        Outcome("rows/types", "kafka", passed=True),
        Outcome("rows/types", "pykafka", passed=False),
        Outcome("rows/types", "pykafka", passed=True),
    ]
    assert render(outcomes, DIFFERENCES, {"rows: pools": "the JVM's own"}).splitlines() == [
        "**4 (1 better, 1 different, 1 fails, 1 same)**",
        "",
        "- life: 3 (1 better, 1 different, 1 same)",
        "- rows: 1 (1 fails)",
        "",
        "| scenario | kafka | pykafka | verdict |",
        "|---|---|---|---|",
        "| life/deleted\\[1] | passed | passed | better: says which |",
        "| life/grown\\[x] | - | passed | different: an older format |",
        "| life/grown\\[y] | - | passed | same |",
        "| rows/types | passed | **failed** | fails |",
        "",
        "Left out:",
        "",
        "- rows: pools: the JVM's own",
    ]
