"""docs/reference/awaiter.md shows the rows that the emulation reads."""

from pathlib import Path

import pytest

from rehearsal.kubernetes.awaiter.kinds import Awaited, awaited

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "awaiter.md"
TIMERS = {"own": "", "fixed": ", fixed", "rearmed": ", rearmed"}


def shown(row: Awaited) -> str:
    cells = (
        row.kind, row.ready, ", ".join(row.errors) or "none", f"{row.limit_s:g} s{TIMERS[row.limit]}",
        "yes" if row.read else "no", row.here or "the same", row.source,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("row", awaited().values(), ids=lambda row: row.kind)
def test_every_row_is_in_the_document(row: Awaited) -> None:
    assert shown(row) in DOCUMENT.read_text().splitlines()


def test_the_kinds_that_a_refresh_judges_are_those_of_the_rows() -> None:
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    start = next(n for n, line in enumerate(lines) if line.startswith("| kind | a refresh finds it unready"))
    cells = [line.strip("| ").split(" | ") for line in lines[start + 1 : start + 9]]
    documented = {
        kind for kinds, when, _ in cells if not when.startswith("never") for kind in kinds.split(", ")
    }
    assert documented == {row.kind.rpartition(" ")[2] for row in awaited().values() if row.read}
