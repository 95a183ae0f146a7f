"""Rows of sacct as the months of teams."""

import pytest

from infra import slurm
from tests.slurm.systems import spec
from trainstack.ledger.periods import bounds
from trainstack.ledger.slurm import months

_FIRST, _AFTER = (int(one.timestamp()) for one in bounds("2026-11"))
_TRES = "billing=5489,cpu=24,gres/gpu:a100=2,gres/gpu=2,mem=280166M,node=1"


def _hours(*rows: str, now: int = _AFTER + 99) -> dict[tuple[str, str, str], float]:
    found = months(slurm.system(spec(), slurm.SystemOptions()), "\n".join(rows), "2026-11", now)
    return {(one.team, line.row.pool, line.row.day): line.held_hours for one in found for line in one.lines}


def test_attempts_are_split_by_day_and_cut_at_the_month() -> None:
    day = 86_400
    assert _hours(
        f"1|research|a100|{_FIRST - 3600}|{_FIRST + 1800}|{_TRES}",
        f"2|applied-ml|a100|{_FIRST + day - 3600}|{_FIRST + day + 3600}|{_TRES}",
        f"2|applied-ml|a100|{_FIRST + day + 4000}|{_FIRST + day + 7600}|{_TRES}",
        f"3|other|l4|{_AFTER - 3600}|Unknown|gres/gpu:l4=1,gres/gpu=1",
        "4|research|a100|Unknown|Unknown|",
        f"5|research|cpu|{_FIRST}|{_FIRST + 3600}|cpu=4",
    ) == {
        ("Research", "a100", "2026-11-01"): 1.0,
        ("Applied ML", "a100", "2026-11-01"): 2.0,
        ("Applied ML", "a100", "2026-11-02"): 4.0,
        ("other", "l4", "2026-11-30"): 1.0,
    }


def test_a_running_job_counts_until_now() -> None:
    row = f"3|research|a100|{_FIRST}|Unknown|{_TRES}"
    assert sum(_hours(row, now=_FIRST + 1800).values()) == 1.0


def test_dollars_are_those_of_the_catalog() -> None:
    row = f"1|research|a100|{_FIRST}|{_FIRST + 3600}|{_TRES}"
    (one, *_) = months(slurm.system(spec(), slurm.SystemOptions()), row, "2026-11", _AFTER)
    assert one.usd == pytest.approx(21.9576 / 4, rel=1e-4)
